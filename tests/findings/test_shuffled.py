"""Shuffles that read inactive lanes: reported where an output depends on the value."""

import numpy as np
import pytest

import bankshot

KERNEL = """\
enable subgroups;
ENABLES
diagnostic(off, subgroup_uniformity);
@group(0) @binding(0) var<storage, read> x: array<TYPE>;
@group(0) @binding(1) var<storage, read_write> y: array<TYPE>;
@compute @workgroup_size(SIZE)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
    let v = x[id.x];
    BODY
}
"""
DTYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u32": np.uint32}


def run(body, size=64, kind="f32", device="nvidia", **options):
    text = KERNEL.replace("BODY", body).replace("SIZE", str(size)).replace("TYPE", kind)
    text = text.replace("ENABLES", "enable f16;" if kind == "f16" else "")
    x = np.arange(1, 129).astype(DTYPES[kind])
    return bankshot.simulate(text, grid=1, bindings={"x": x, "y": np.zeros_like(x)}, device=device, **options)


def found(*args, **options):
    return [f for f in run(*args, **options).findings if f.code == "inactive-lane"]


def test_it_is_reported_for_the_first_workgroup_without_lanes():
    text = KERNEL.replace("BODY", TWINS[0][0]).replace("SIZE", "64").replace("TYPE", "u32").replace("ENABLES", "")
    x = np.arange(1, 129, dtype=np.uint32)
    (finding,) = bankshot.simulate(text, grid=2, bindings={"x": x, "y": np.zeros_like(x)}).findings
    assert (finding.code, finding.workgroup, finding.lanes, finding.count) == ("inactive-lane", (0, 0, 0), (), 1)


# A shuffle that reads what is not there, and one that does not: how many elements of y then hold anything.
TWINS = [
    ("y[id.x] = subgroupShuffleUp(v, 1u);", 64, 2),
    ("y[id.x] = select(v, subgroupShuffleUp(v, 1u), lane >= 1u);", 64, 0),
    ("y[id.x] = subgroupShuffleDown(v, 3u);", 64, 6),
    ("let w = subgroupShuffleDown(v, 3u); if lane + 3u < 32u { y[id.x] = w; }", 64, 0),
    ("y[id.x] = subgroupShuffleXor(v, 16u);", 48, 16),  # lanes 16 to 31 of the second subgroup do not exist
    ("y[id.x] = subgroupShuffleXor(v, 16u);", 64, 0),
    ("y[id.x] = subgroupShuffle(v, 32u);", 64, 64),
    ("y[id.x] = subgroupShuffle(v, 4000000000u - lane);", 64, 64),
    ("y[id.x] = subgroupShuffle(v, 31u - lane);", 64, 0),
    ("if lane < 4u { y[id.x] = subgroupBroadcast(v, 8u); }", 64, 8),
    ("if lane < 4u { y[id.x] = subgroupBroadcast(v, 3u); }", 64, 0),
    ("if lane > 4u { y[id.x] = subgroupBroadcastFirst(v); }", 64, 0),
    ("y[id.x] = quadSwapX(v);", 63, 1),
    ("y[id.x] = quadSwapX(v);", 64, 0),
    ("if lane % 4u < 2u { y[id.x] = quadBroadcast(v, 2u); }", 64, 32),
    ("y[id.x] = subgroupExclusiveAdd(v);", 48, 0),
]


@pytest.mark.parametrize(("body", "size", "elements"), TWINS)
def test_what_is_read_of_lanes_that_are_not_active(body, size, elements):
    findings = found(body, size)
    assert len(findings) == (elements > 0)
    for finding in findings:
        assert (finding.severity, finding.verdict, finding.span.line) == ("warning", "harmful", 9)
        assert finding.notes[0].message.startswith(f"with other values there, {elements} of 128 elements of y differ")


@pytest.mark.parametrize("kind", ["f32", "f16", "i32", "u32"])
def test_every_kind_of_number(kind):
    assert len(found("y[id.x] = subgroupShuffleUp(v, 1u);", kind=kind)) == 1
    assert not found("y[id.x] = select(v, subgroupShuffleUp(v, 1u), lane >= 1u);", kind=kind)


def test_a_run_that_does_not_end_with_other_values_there_is_an_effect():
    """NaN is a possible value, with which the loop does not end."""
    (finding,) = found("var w = subgroupShuffleUp(v, 1u); while !(w >= 0.0) { } y[id.x] = v;")
    assert [note.message for note in finding.notes] == ["with other values there, it does not terminate"]


def test_of_several_shuffles_the_one_is_named_that_matters():
    body = """let up = subgroupShuffleUp(v, 1u);
    let down = subgroupShuffleDown(vec2(v, v), 1u);
    y[id.x] = select(0.0, up, lane > 0u) + down.y;"""
    (finding,) = found(body)
    assert (finding.span.line, finding.message) == (
        10, "this subgroupShuffleDown reads a lane that is inactive or outside the subgroup"
    )  # fmt: skip


@pytest.mark.parametrize(("device", "elements"), [("nvidia", 2), ("amd-cdna", 1), ("lavapipe", 8)])
def test_it_depends_on_the_size_of_subgroups(device, elements):
    (finding,) = found("y[id.x] = subgroupShuffleUp(v, 1u);", device=device)
    assert f"{elements} of 128 elements of y differ" in finding.notes[0].message


def test_outputs_are_those_of_the_usual_run_and_a_comment_answers_for_it():
    body = "y[id.x] = subgroupShuffleUp(v, 1u); // bankshot: allow(inactive-lane) because lane 0 is not read"
    allowed = run(body)
    assert ([f.code for f in allowed.findings], [f.code for f in allowed.silenced]) == ([], ["inactive-lane"])
    assert allowed.outputs["y"][:3].tolist() == [0, 1, 2]
    assert not found(body.partition("//")[0], probes="counters")
    assert found(body.partition("//")[0], replay=False)
