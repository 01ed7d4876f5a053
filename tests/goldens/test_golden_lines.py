"""Counters of lines before and after an edit, made up here so that every figure is known by hand."""

from types import SimpleNamespace

import pytest

from bankshot.oracle.goldens.golden_lines import BY_LINE, Line, changes, lines_of, pairs
from bankshot.sim.wgsl.source import Source, Span

TOTALS = {name: 0 for name in BY_LINE}


def line(number, text, file="k.wgsl", **counters):
    return Line(file, number, text, counters)


def shared(number, text, wavefronts, requests=4, **more):
    return line(number, text, shared_wavefronts=wavefronts, shared_requests=requests, **more)


def said(before, after, barriers=0, **totals):
    found = changes({**TOTALS, **totals}, before, {**TOTALS, **totals, "barriers": barriers}, after)
    return [str(change) for change in found]


def test_equal_counters_are_not_reported():
    assert said([shared(3, "a", 8)], [shared(3, "a", 8)]) == []


def test_a_change_is_reported_as_a_rate():
    before, after = [shared(84, "b = t[i];", 128)], [shared(84, "b = t[i];", 16)]
    assert said(before, after) == ["k.wgsl:84: 32 -> 4 wavefronts per request, +0 barriers"]
    assert said(before, after, barriers=3) == ["k.wgsl:84: 32 -> 4 wavefronts per request, +3 barriers"]
    assert said(after, before, barriers=-2) == ["k.wgsl:84: 4 -> 32 wavefronts per request, -2 barriers"]
    (change,) = changes({**TOTALS, "barriers": 5}, before, {**TOTALS, "barriers": 3}, after)
    assert str(change) == "k.wgsl:84: 32 -> 4 wavefronts per request, -2 barriers"


def test_sectors_and_counts_have_labels():
    before = [line(5, "v = x[i];", global_sectors=16, global_requests=4, flops=1_000)]
    after = [line(5, "v = x[i];", global_sectors=4, global_requests=4, flops=2_000)]
    words = "k.wgsl:5: 4 -> 1 sectors per request, 1,000 -> 2,000 floating point operations"
    assert said(before, after) == [words]


def test_a_change_too_small_for_a_rate_is_reported_as_a_count():
    before, after = [shared(1, "a", 10_000_000, 10_000_000)], [shared(1, "a", 10_000_001, 10_000_000)]
    assert said(before, after) == ["k.wgsl:1: 10,000,000 -> 10,000,001 wavefronts"]


def test_omitted_differences_are_counted():
    many = {name: 2 for name in ("barriers", "atomics", "flops", "executions", "active_lanes")}
    assert said([], [line(1, "a", **many)], barriers=2)[0].endswith(" (and 2 more)")


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ([shared(9, "a", 4), shared(12, "b", 8)], []),  # comments and lines above
        ([shared(1, "b", 8), shared(2, "a", 4)], []),  # moved
        ([shared(1, "a2", 4), shared(2, "b", 8)], []),  # edited, and costs the same
        ([shared(1, "a", 4), shared(2, "b2", 16)], ["k.wgsl:2: 2 -> 4 wavefronts per request, +0 barriers"]),
        ([shared(1, "a", 4)], ["k.wgsl:2: line is gone, 2 -> 0 wavefronts per request, +0 barriers, "
                               "4 -> 0 requests to workgroup memory"]),
        ([shared(1, "a", 4), shared(2, "b", 8), shared(3, "zzz", 4)],
         ["k.wgsl:3: new line, 0 -> 1 wavefronts per request, +0 barriers, 0 -> 4 requests to workgroup memory"]),
    ],
)  # fmt: skip
def test_lines_are_matched_by_their_text(after, told):
    assert said([shared(1, "a", 4), shared(2, "b", 8)], after) == told


def test_an_edited_line_is_matched_with_the_most_similar_one():
    before = [line(1, "sum = sum + tile[row * 33u];", flops=1)]
    after = [line(1, "let q = 3;", flops=2), line(2, "sum = sum + tile[row * 32u];", flops=3)]
    assert [(old and old.line, new and new.line) for old, new in pairs(before, after)] == [(1, 2), (None, 1)]


def test_equal_lines_keep_their_order():
    """Of two lines with one text, the second must not be matched with the first."""
    twins = [shared(1, "a", 4), shared(5, "a", 8)]
    assert said(twins, [shared(2, "a", 4), shared(6, "a", 8)]) == []
    assert len(said(twins, [shared(2, "a", 8), shared(6, "a", 4)])) == 2


def test_the_worst_comes_first_and_totals_last():
    before = [shared(1, "a", 4), shared(2, "b", 4)]
    after = [shared(1, "a", 8), shared(2, "b", 64)]
    found = changes(
        {**TOTALS, "workgroup_memory_bytes": 4224}, before, {**TOTALS, "workgroup_memory_bytes": 4096}, after
    )
    assert [change.line for change in found] == [2, 1, 0]
    assert str(found[-1]) == "in all: 4,224 -> 4,096 bytes of workgroup memory"


def test_a_counter_that_the_golden_lacks_is_not_compared():
    known = {name: 0 for name in TOTALS if name != "global_lines"}
    assert changes(known, [line(1, "a", flops=1)], TOTALS, [line(1, "a", flops=1, global_lines=7)]) == ()


@pytest.mark.parametrize(
    ("lacking", "words", "weight"),
    [
        ((), "32 -> 4 wavefronts per request, +3 barriers, 4 -> 1 requests to workgroup memory", 124),
        (("barriers",), "32 -> 4 wavefronts per request, 4 -> 1 requests to workgroup memory", 124),
        (("shared_wavefronts",), "4 -> 1 requests to workgroup memory", 0),
        (("shared_wavefronts", "shared_requests"), "", 0),
        (("shared_requests",), "128 -> 4 wavefronts", 124),
    ],
)
def test_words_of_counters_that_the_golden_lacks_are_left_out(lacking, words, weight):
    known = {name: 0 for name in TOTALS if name not in lacking}
    after = {**TOTALS, "barriers": 3}
    found = changes(known, [shared(1, "a", 128)], after, [shared(1, "a", 4, 1)])
    assert [(change.words, change.weight) for change in found if change.line] == ([(words, weight)] if words else [])


def test_sites_are_summed_by_line(tmp_path):
    """Comments and blanks do not count; paths are relative to the owner of the golden."""
    text = "one;\n  let a =  x[i]; // twice\n  if done {} /* or not */\n"
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "k.wgsl"
    path.write_text(text)
    source = Source(text, str(path))

    def site(number, **counters):
        start = source.line_start(number - 1)
        return SimpleNamespace(span=Span(source, start, start + 1), **{**TOTALS, **counters})

    found = lines_of([site(2, flops=3), site(3, barriers=1), site(2, flops=4, atomics=1), site(1)], tmp_path)
    assert found == (
        line(2, "let a = x[i];", "sub/k.wgsl", flops=7, atomics=1),
        line(3, "if done {}", "sub/k.wgsl", barriers=1),
    )
    text_only = Source(text, "shader.wgsl")
    (alone,) = lines_of([SimpleNamespace(**{**TOTALS, "flops": 1}, span=Span(text_only, 7, 8))], tmp_path)
    assert alone == line(2, "let a = x[i];", "shader.wgsl", flops=1)


# Lines of ten characters of which some are in the other one, in order: the similarity is their share.
@pytest.mark.parametrize(
    ("after", "alike"),
    [("abcdefghij", True), ("abcdefXXXX", True), ("abcdeXXXXX", True), ("abcdXXXXXX", False), ("XXXXXXXXXX", False)],
)
def test_a_line_is_an_edit_of_another_if_half_of_it_is_alike(after, alike):
    before, other = shared(1, "abcdefghij", 4), shared(2, "0123456789", 4)
    found = {(old and old.text, new and new.text) for old, new in pairs([before], [shared(1, after, 4), other])}
    edited = {("abcdefghij", after), (None, "0123456789")}
    new = {("abcdefghij", None), (None, after), (None, "0123456789")}
    assert found == (edited if alike else new)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"shared_wavefronts": 8}, {"shared_wavefronts": 8, "shared_requests": 4},
         "0 -> 2 wavefronts per request, 0 -> 4 requests to workgroup memory"),
        ({"global_sectors": 6, "global_requests": 4}, {"global_sectors": 6},
         "1.5 -> 0 sectors per request, 4 -> 0 requests to global memory"),
        ({"global_sectors": 6}, {"global_sectors": 8}, "6 -> 8 sectors"),
        ({"shared_wavefronts": 6}, {"shared_wavefronts": 8}, "6 -> 8 wavefronts"),
        ({"shared_wavefronts": 6, "shared_requests": 3}, {"shared_wavefronts": 8, "shared_requests": 4},
         "3 -> 4 requests to workgroup memory"),
    ],
)  # fmt: skip
def test_a_line_without_requests_has_no_rate(before, after, words):
    (told,) = said([line(1, "a", **before)], [line(1, "a", **after)])
    assert told.removeprefix("k.wgsl:1: ").replace(", +0 barriers", "") == words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({}, {}, []),
        ({"invocations": 64}, {"invocations": 64}, []),
        ({"invocations": 64}, {"invocations": 128}, ["in all: 64 -> 128 invocations"]),
        ({"invocations": 64}, {}, []),  # counted by one version alone
        ({}, {"invocations": 64}, []),
    ],
)
def test_totals_are_compared_where_both_have_them(before, after, words):
    assert [str(change) for change in changes(before, [], after, [])] == words


def test_a_golden_without_requests_has_no_rates():
    totals = {"shared_wavefronts": 6}
    (change,) = changes(totals, [line(1, "a", **totals)], {"shared_wavefronts": 8}, [line(1, "a", shared_wavefronts=8)])
    assert str(change) == "k.wgsl:1: 6 -> 8 wavefronts"
