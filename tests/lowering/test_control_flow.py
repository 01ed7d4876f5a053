"""Control flow under masks: each lane does what it would do alone."""

import pytest

from tests.programs_made.dispatch import run, values


def test_a_branch_may_change_its_own_condition():
    body = """
        var toggle = i < 2u;
        var sum = 0u;
        for (var k = 0u; k < 3u; k++) {
            if toggle { toggle = false; sum += 1u; } else { toggle = true; sum += 10u; }
        }
        y[i] = sum;
    """
    assert values(body) == [12, 12, 21, 21]


def test_a_continuing_that_is_never_reached():
    body = """
        loop {
            if true { break; } else { break; }
            let again = vec2(true, false);
            continuing { break if again.x; }
        }
        y[i] = i;
    """
    assert values(body) == [0, 1, 2, 3]


def test_the_first_half_of_a_branch_keeps_its_lanes_when_its_condition_changes():
    body = """
        var inside = i < 2u;
        loop { if true { break; } }
        for (var k = 0u; k < 1u; k++) {
            if inside { inside = false; y[i] = 1u; }
        }
    """
    assert values(body) == [1, 1, 0, 0]


def test_a_loop_condition_that_the_condition_itself_changes():
    before = """
        fn and_then(now: bool, next: bool) -> bool { return now; }
        fn stop(going: ptr<function, bool>) -> bool { *going = false; return false; }
    """
    body = """
        var going = i < 2u;
        var turns = 0u;
        while and_then(going, stop(&going)) { turns += 1u; }
        y[i] = turns;
    """
    assert values(body, before=before) == [1, 1, 0, 0]


def test_a_pointer_made_in_a_loop_changes_what_it_points_to():
    body = """
        var count = 0u;
        loop {
            if count > 3u { break; }
            let pointer = &count;
            *pointer = *pointer + 1u;
        }
        y[i] = count;
    """
    assert values(body, budget=100) == [4, 4, 4, 4]


@pytest.mark.parametrize("lanes_that_leave", [0, 2, 4])
def test_a_loop_that_waits_for_a_store_of_lanes_that_may_all_have_left(lanes_that_leave):
    body = f"""
        if i < {lanes_that_leave}u {{ return; }}
        loop {{
            if y[0] > 3u {{ break; }}
            y[0] = y[0] + 1u;
        }}
    """
    assert values(body, budget=100, probes="bounds") == [0 if lanes_that_leave == 4 else 4, 0, 0, 0]


def test_a_loop_that_all_lanes_leave_in_the_middle_of_an_iteration():
    body = """
        for (var k = 0u; k < 3u; k++) {
            if i < 10u { continue; }
            loop { if y[0] > 3u { break; } y[0] = y[0] + 1u; }
        }
        y[i] = i;
    """
    assert values(body, budget=100) == [0, 1, 2, 3]


def test_the_right_of_a_short_circuit_is_counted_only_where_it_is_evaluated():
    done = run("if i < 1u && f32(i) * 2.0 < 1.0 { y[i] = 1u; }")
    assert done.counters["flops"] == 1
    assert done.outputs["y"].tolist() == [1, 0, 0, 0]


def test_a_constant_index_past_a_runtime_sized_array_is_kept_in_bounds():
    done = run("y[100] = 7u; y[i] = y[200] + 1u;")
    assert done.outputs["y"].tolist() == [8, 8, 8, 8]
    assert [f.code for f in done.findings] == ["out-of-bounds", "out-of-bounds"]


def test_a_body_that_continues_in_every_path_reaches_its_continuing():
    body = """
        var k = i;
        var sum = 0u;
        loop {
            if k == 3u { k += 2u; continue; }
            k++;
            continue;
            continuing { sum += k; break if k > 6u; }
        }
        y[i] = sum;
    """
    # from 0: 1 2 3 5 6 7; from 3: 5 6 7
    assert values(body) == [24, 24 - 0 - 1, 24 - 1 - 2, 18]


@pytest.mark.parametrize(("condition", "stored"), [("2 < 1", "b"), ("1 < 2", "a")])
def test_of_a_branch_by_a_constant_only_one_side_is_in_the_program(condition, stored):
    done = run(f"let a = i; let b = i; if {condition} {{ y[a] = 5u; }} else {{ y[b] = 7u; }}")
    assert done.outputs["y"].tolist() == [5 if stored == "a" else 7] * 4
    assert [site.span.text for site in done.sites if site.kind == "store"] == [f"y[{stored}]"]
