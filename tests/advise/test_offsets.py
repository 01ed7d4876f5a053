"""Offsets that come to an index through a `let` or a parameter: where they are, and that a pitch changes them, too."""

import pytest

from bankshot.oracle.advise.array_layouts import Layouts
from bankshot.oracle.advise.layout_search import Options, advise
from bankshot.oracle.advise.value_flow import Flow
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.sim.front_end import check

# Two buffers of 16 rows of 17. `{}` stands for what the index of the second one begins with.
TEXT = """\
@group(0) @binding(0) var<storage, read> x: array<f32, 512>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 256>;
const PITCH = 17u;
const HALF = 272u;
var<workgroup> tile: array<f32, 2 * 272>;
fn load(base: u32, row: u32, column: u32) -> f32 {{ return tile[base + row * PITCH + column]; }}
@compute @workgroup_size(16, 16)
fn main(@builtin(local_invocation_index) i: u32, @builtin(local_invocation_id) at: vec3<u32>) {{
    for (var step = 0u; step < 2u; step += 1u) {{
        {stored}
        workgroupBarrier();
        y[i] += {loaded};
        workgroupBarrier();
    }}
}}
"""
STORED = "tile[cur + at.y * PITCH + at.x] = x[step * 256u + i];"
FORMS = {
    "a constant in a let": ("let cur = step * HALF; " + STORED, "load(cur, at.x, at.y)"),
    "a number in a let": ("let cur = step * 272u; " + STORED, "load(cur, at.x, at.y)"),
    "a let of a let": ("let start = step * HALF; let cur = start; " + STORED, "load(cur, at.x, at.y)"),
    "an argument": (STORED.replace("cur", "step * HALF"), "load(step * HALF, at.x, at.y)"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_pitch_takes_the_second_buffer_along(form, tmp_path):
    """Rows of 16 fit only if the second buffer starts at 256, of 512 in all."""
    stored, loaded = FORMS[form]
    file = tmp_path / "kernel.wgsl"
    file.write_text(TEXT.format(stored=stored, loaded=loaded))
    (plan,) = plans([file], Request(grid=(1, 1, 1)))
    (advice,) = advise(plan.case(plan.shapes[0]), Options(values=(16, 17))).advice
    plain = {trial.pitch: (trial.refused, trial.bytes) for trial in advice.trials if trial.swizzle is None}
    assert plain == {17: (None, 4 * 2 * 272), 16: (None, 4 * 2 * 256)}


def offsets(stored, loaded):
    module = check(TEXT.format(stored=stored, loaded=loaded))
    tree = Layouts(module, module.pipeline(), "tile").tree
    return [node.span.text for node in Flow(tree).offsets("tile")]


@pytest.mark.parametrize(
    ("stored", "loaded", "found"),
    [
        (*FORMS["a constant in a let"], ["step * HALF", "cur", "at.y"]),
        (*FORMS["an argument"], ["step * HALF", "at.y"]),
        ("let cur = step * HALF; y[cur] = 0.0; " + STORED, "0.0", []),
        ("let row = at.y; tile[row * PITCH] = 1.0;", "0.0", []),
    ],
    ids=["a let", "an argument", "also another use", "a factor"],
)
def test_offsets_are_added_to_indices_and_nothing_else(stored, loaded, found):
    """`at.x` of the call is a row, which is multiplied by the pitch."""
    assert offsets(stored, loaded) == found
