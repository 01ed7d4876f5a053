"""Which branches compilers make conditional, as measured on an H200, and what that costs."""

from __future__ import annotations

import pytest

from bankshot.sim.performance.predicated_branches import PredicatedBranches
from tests.performance.test_chains import FRAME, costs

FLOATS = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 1024>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) l: u32) {
    let own = u32(x[l]);
    var s = vec4f(x[1], x[2], x[3], x[4]);
    for (var i = 0u; i < 1024u; i++) { BODY }
    y[id.x] = s.x + s.y + s.z + s.w + t[l];
}"""


def branches(statement: str, frame: str = FRAME) -> int:
    return sum(region.issued["branch"] for region in costs(statement, frame=frame))


def products(count: int) -> str:
    return "".join(f"s[{n % 4}] = fma(s[{n % 4}], 1.5, 0.5); " for n in range(count))


LOADS = [f"s.{name} += x[i + {7 * n}u]; " for n, name in enumerate("xyz")]
SHARED = "s.x += t[(l + i) & 1023u]; "


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("if (i < 9u) { y[i] = x[i]; }", 0),
        ("if (i < 9u) { y[i] = x[i]; } else { y[i] = x[63u - i]; }", 0),
        ("if (i < 9u) { for (var k = 0u; k < x[i]; k++) { y[i] = k; } }", 1),
        ("if (i < 9u) { if (i > 3u) { t[i] = 1u; } }", 0),
    ],
)
def test_short_branches_are_predicated(statement: str, count: int) -> None:
    assert branches(statement) == count


@pytest.mark.parametrize(
    ("before", "most", "least"),  # the most products that were predicated, and the least that were not
    [("", 8, 9), (LOADS[0], 12, 14), ("".join(LOADS[:2]), 4, 8), (SHARED, 2, 3)],
)
def test_what_loads_from_storage_is_predicated_up_to_more_instructions(before: str, most: int, least: int) -> None:
    for count, found in ((most, 0), (least, 1)):
        assert branches(f"if (i < own) {{ {before}{products(count)} }}", FLOATS) == found


def test_three_loads_from_storage_are_not_predicated() -> None:
    assert branches(f"if (i < own) {{ {''.join(LOADS)} }}", FLOATS) == 1


def test_a_sum_of_two_words_of_workgroup_memory_is_predicated() -> None:
    assert branches("if (i < own) { t[l] += t[(l + i) & 1023u]; }", FLOATS) == 0


@pytest.mark.parametrize(("count", "found"), [(6, 0), (7, 1)])
def test_a_branch_that_all_lanes_take_is_predicated_up_to_fewer_instructions(count: int, found: int) -> None:
    assert branches(f"if (i < u32(x[0])) {{ {products(count)} }}", FLOATS) == found


@pytest.mark.parametrize(("operation", "count"), [("i / (own + 7u)", 1), ("i / 7u", 0)])
def test_a_division_by_a_constant_is_short(operation: str, count: int) -> None:
    assert branches(f"if (i < own) {{ s.x += f32({operation}); }}", FLOATS) == count


def test_each_side_of_a_branch_may_have_as_many_instructions() -> None:
    for count, found in ((8, 0), (9, 1)):
        sides = products(count), products(count).replace("1.5", "0.5")
        assert branches(f"if (i < own) {{ {sides[0]} }} else {{ {sides[1]} }}", FLOATS) == found


def test_what_is_predicated_issues_whatever_the_condition() -> None:
    """On an H200, the eight products below take as long with a condition that never holds as with one that does."""
    for count, issued in ((8, 8), (9, 0)):
        found = costs(f"if (i < own) {{ {products(count)} }}", frame=FLOATS)
        (body,) = (region for region in found if region.iterates)
        inside = [region for region in found if region.parent is body]
        assert body.issued["fp32"] == issued
        assert sum(region.issued["fp32"] for region in inside) == count - issued


def test_each_item_is_counted_once_however_long_a_chain_of_branches_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[int]()
    part = PredicatedBranches._part
    monkeypatch.setattr(PredicatedBranches, "_part", lambda self, item: found.append(id(item)) or part(self, item))
    visits = list[int]()
    for count in (20, 40):
        found.clear()
        costs(" else ".join(f"if (i == {n}u) {{ {'y[i] += x[i]; ' * 4} }}" for n in range(count)))
        assert len(found) == len(set(found))
        visits.append(len(found))
    assert visits[0] > 0
    assert visits[1] <= 2.1 * visits[0]


@pytest.mark.parametrize("more", ["", "y[i] = a; " * 9])  # predicated, and not
def test_what_follows_a_branch_waits_for_loads_before_it_whether_it_is_taken_or_not(more: str) -> None:
    body = f"let v = x[i + k]; let w = x[i + k + 64u]; if (n == 7u) {{ a += v; {more}}} a ^= w * 3u;"
    found = costs(f"let n = x[0]; var a = 0u; for (var k = 0u; k < 9u; k++) {{ {body} }} y[i] = a;")
    (loop,) = (region for region in found if region.iterates)
    assert loop.chain["storage_load"] >= 1
    assert not any("storage_load" in region.chain for region in found if region.parent is loop)


def test_a_branch_waits_for_its_own_loads_where_it_is_taken() -> None:
    found = costs("if (i < 9u) { y[i] = x[x[i]] * 3u; }")
    assert [region.chain.get("storage_load", 0) for region in found if region.parent] == [2, 0]
    assert "storage_load" not in found[0].chain
