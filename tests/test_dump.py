"""Stages as text: what each shows is compared with tests/files/dump, and every shader in shaders/ can be shown."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle.manifests.reflection import source_of
from bankshot.sim import dump
from bankshot.sim.codegen.program_text import TEMPLATES
from bankshot.sim.ir.dump import literal
from bankshot.sim.machine import opcodes
from bankshot.sim.run.prepared import dispatch_of, dump_stage
from bankshot.sim.wgsl.check.check_module import check
from tests.programs_made.project_kernels import project_kernels

ROOT = Path(__file__).parent.parent
FILES = Path(__file__).parent / "files" / "dump"
COMPARED = ("syntax", "typed", "ir", "program")  # "machine" names files and their sizes
WORDS, FLOATS = np.zeros(64, np.uint32), np.zeros(64, np.float32)
TEXELS = np.zeros((4, 4, 4), np.float32)
BINDINGS = {
    "control_flow": {"y": WORDS},
    "memory": {"params": WORDS[:4], "x": WORDS, "y": FLOATS, "m": FLOATS[:4]},
    "atomics": {"counts": WORDS[:4], "most": WORDS[:1]},
    "subgroups": {"y": FLOATS, "bits": WORDS},
    "textures": {"image": TEXELS, "blurred": np.zeros((4, 4, 4), np.uint8), "nearby": bankshot.Sampler()},
    "f16": {"x": np.zeros(64, np.float16), "y": np.zeros(64, np.float16)},
}


def prepared(name, **given):
    text = (FILES / f"{name}.wgsl").read_text(encoding="utf-8")
    module = bankshot.check(text, name=f"{name}.wgsl")
    return dispatch_of(module, grid=1, bindings=BINDINGS[name], **given)


@pytest.mark.parametrize("stage", COMPARED)
@pytest.mark.parametrize("name", BINDINGS)
def test_stages_are_printed(name, stage, golden):
    golden(dump_stage(stage, prepared(name), "counters"), FILES / f"{name}.{stage}.txt")


def test_instructions_of_every_probe_are_printed(golden):
    golden(dump_stage("program", prepared("memory"), "all"), FILES / "memory_all_probes.program.txt")


def test_indices_and_checks_are_printed(golden):
    golden(dump_stage("ir", prepared("memory"), ("bounds", "nan")), FILES / "memory_checks.ir.txt")


def test_the_machine_stage_has_units_and_arrays():
    dispatch = prepared("memory")
    text = dump_stage("machine", dispatch)
    assert "machine.core.run: " in text
    rows, fields = dispatch.stages(frozenset()).launch().program.code.shape
    assert f"array code: int32 {rows}x{fields}, {rows * fields * 4} bytes" in dump_stage("machine", dispatch, "none")


def kernels():
    return [pytest.param(plan, id=plan.kernel.name) for plan in project_kernels()]


@pytest.mark.parametrize("plan", kernels())
def test_every_kernel_can_be_printed_and_is_printed_the_same_again(plan):
    """Twice from the text on, so that nothing depends on the identity of objects."""
    case = plan.case(min(plan.shapes, key=lambda shape: np.prod(list(shape.dims.values()))))

    def shown():
        dispatch = dispatch_of(check(source_of(case.kernel)), **case.launch)
        return [dump_stage(stage, dispatch) for stage in COMPARED]

    first = shown()
    assert all(first)
    assert first == shown()


def test_every_operation_of_the_machine_has_a_template():
    assert set(TEMPLATES) == set(opcodes.NAMES)


@pytest.mark.parametrize(
    ("kind", "bits", "text"),
    [
        ("f32", 0x3DCCCCCD, "0.1f"),
        ("f32", 0x7F800000, "inff"),
        ("f16", 0x3F800000, "1h"),
        ("i32", 0xFFFFFFFF, "-1i"),
        ("u32", 17, "17u"),
        ("u32", 0xFFFFFFFF, "0xffffffffu"),
        ("bool", 1, "true"),
    ],
)
def test_a_constant_is_printed_as_a_literal_of_its_kind(kind, bits, text):
    assert literal(kind, bits) == text


LOOPS = {
    "while y[0] < 3u { y[0]++; }": ("loop", "while", "body"),
    "loop { y[0]++; if y[0] > 3u { break; } }": ("loop", "body"),
    "loop { y[0]++; continuing { y[1]++; break if y[0] > 3u; } }": ("loop", "body", "continuing", "break if"),
    "loop { y[0]++; continuing { break if y[0] > 3u; } }": ("loop", "body", "continuing", "break if"),
    "var k = 0u; loop { k++; y[0] = k; let done = k > 3u; continuing { break if done; } }": (
        "loop", "body", "continuing", "break if"),
    "for (var k = 0u; k < 3u; k++) { y[0] += k; }": ("loop", "while", "body", "continuing"),
}  # fmt: skip


@pytest.mark.parametrize("text", LOOPS)
def test_the_parts_of_a_loop_are_printed_if_it_has_them(text):
    declared = "@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;"
    module = bankshot.check(f"{declared} @compute @workgroup_size(1) fn main() {{ {text} }}")
    shown = dump_stage("ir", dispatch_of(module, grid=1, bindings={"y": np.zeros(4, np.uint32)}), "none")
    lines = [line.strip(" {}") for line in shown.splitlines() if "//" not in line]
    parts = [part for line in lines for part in re.findall("^(loop|while|body|continuing|break if)", line)]
    assert tuple(parts) == LOOPS[text]


# ---- BANKSHOT_DEBUG ----------------------------------------------------------------------------------

DOUBLE = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = f32(i) * 2.0; }
"""


def sizes_of(value):
    """The bytes of each array in nested tuples."""
    return [size for each in value for size in sizes_of(each)] if isinstance(value, tuple) else [value.nbytes]


def test_the_arrays_of_the_machine_add_up():
    dispatch = dispatch_of(DOUBLE, grid=1, bindings={"y": np.zeros(4, np.float32)})
    shown = dump_stage("machine", dispatch, "none")
    sizes = [int(found) for found in re.findall(r"^array .*, (\d+) bytes$", shown, re.M)]
    assert sizes == [*sizes_of(dispatch.stages(frozenset()).launch().machine_arrays())]
    assert f"in all {sum(sizes)} bytes, " in shown


def run():
    bankshot.simulate(DOUBLE, grid=1, bindings={"y": np.zeros(4, np.float32)})


def test_the_variable_prints_stages_up_to_its_number(monkeypatch, capsys):
    monkeypatch.setenv(dump.VARIABLE, "3")
    run()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("---- syntax: main of shader.wgsl ----\n@group(0)")
    assert "---- ir: main of shader.wgsl ----\naccess #0: store storage y" in shown.err
    assert "---- program" not in shown.err


@pytest.mark.parametrize("level", ["", "0", "yes"])
def test_nothing_is_printed_or_computed_without_it(monkeypatch, capsys, level):
    monkeypatch.setenv(dump.VARIABLE, level)
    monkeypatch.setattr(dump, "to_text", lambda *_: pytest.fail("computed"))
    run()
    assert capsys.readouterr().err == ""
