"""The tool that deletes barriers of a folder's shaders, on a shader whose barriers are known."""

from pathlib import Path

import pytest

from tools.deleted_barriers import answers, main, shaders

SHADER = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> t: array<u32, 64>;
var<workgroup> n: u32;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {
    t[i] = i; // workgroupBarrier();
    workgroupBarrier();
    let a = t[63u - i];
    storageBarrier();
    if i == 0u { n = 3u; }
    let b = workgroupUniformLoad(&n);
    if arrayLength(&y) == 1u { workgroupBarrier(); }
    y[g.x * 64u + i] = a + b;
}
"""


def test_each_barrier_is_found_redundant_or_not_reached(tmp_path: Path) -> None:
    (tmp_path / "a.wgsl").write_text(SHADER, encoding="utf-8")
    assert [(a.line, a.what) for a in answers(tmp_path / "a.wgsl")] == [
        (8, "found"), (10, "redundant"), (12, "found"), (13, "not reached")
    ]  # fmt: skip


def test_shaders_are_those_with_barriers_from_the_folders_in_turn(tmp_path: Path) -> None:
    for name, text in (("a/1", "x"), ("a/2", "y"), ("b/1", "z"), ("b/2", "z")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.wgsl").write_text(SHADER + f"// {text}", encoding="utf-8")
    (tmp_path / "a" / "0.wgsl").write_text("// workgroupBarrier()", encoding="utf-8")
    assert [str(p.relative_to(tmp_path)) for p in shaders(tmp_path)] == ["a/1.wgsl", "b/1.wgsl", "a/2.wgsl"]


def test_the_last_line_has_the_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.wgsl").write_text(SHADER, encoding="utf-8")
    (tmp_path / "b.wgsl").write_text("fn f() { workgroupBarrier(); oh no }", encoding="utf-8")
    main(str(tmp_path))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("1 shaders, 4 barriers: {'found': 2, 'redundant': 1, 'not reached': 1}")
