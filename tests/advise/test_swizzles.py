"""Swizzles: which there are, what they cost by the accesses of a workgroup, and how a change of the files applies."""

import re
import subprocess
from itertools import product

import numpy as np
import pytest

import bankshot
from bankshot.oracle.advise.bank_patterns import patterns_of
from bankshot.oracle.advise.layout_search import BY, Options, advise
from bankshot.oracle.advise.swizzles import Swizzle, Term, swizzles, terms
from bankshot.oracle.gpu_counters.access_trace import Request as Access
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.manifests.reflection import check_module
from bankshot.sim.ir.sites import SourceSite
from bankshot.sim.models import DEVICES
from bankshot.sim.wgsl.source import Source, Span
from tests.advise.test_advise import FORMS, case_of, command
from tests.conftest import ROOT

NOWHERE = Span(Source(""), 0, 0)
NVIDIA = DEVICES["nvidia"]


@pytest.mark.parametrize(("length", "unit"), [(64, 64), (1024, 32), (96, 96), (1088, 1088)])
def test_a_swizzle_permutes_each_block(length, unit):
    """A term needs its block, 2^(left + bits), to divide a row; 96 is 3 * 32 and 1088 is 17 * 64."""
    index = np.arange(length)
    found = list(swizzles(length, unit, most_terms=1)) + [
        Swizzle((a, b)) for a, b in zip(terms(length, unit), terms(length, unit)[1:], strict=False)
    ]
    assert found
    for swizzle in found:
        moved = swizzle.of(index)
        assert sorted(moved) == index.tolist()
        assert (moved // swizzle.block == index // swizzle.block).all()
        assert unit % swizzle.block == 0


def test_the_terms_of_eight_elements():
    """Bit 0 takes bits 1 or 2, or bits 0 and 1 take bit 2, which alone is above both; bit 1 takes bit 2."""
    assert set(terms(8, 8)) == {Term(1, 1, 0), Term(2, 1, 0), Term(2, 1, 1)}


def test_the_text_is_what_is_computed():
    index = np.arange(256)
    for swizzle in (Swizzle((Term(5, 2),)), Swizzle((Term(6, 1, 2), Term(3, 3, 0)))):
        text = re.sub(r"(?<=\d)u", "", swizzle.text("index", "u"))
        assert (eval(text, {"index": index}) == swizzle.of(index)).all()


def requests(addresses, width, kind="load", name=None):
    site = SourceSite(kind, NOWHERE, "workgroup", "tile", width, name=name)
    return [Access(site, 0, 0, np.array(row)) for row in addresses]


@pytest.mark.parametrize("device", ["nvidia", "amd-cdna", "apple"])
@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("kind", ["load", "store"])
def test_patterns_cost_what_the_rule_of_the_device_says(device, width, kind):
    """Also where lanes are inactive or agree on an address, in whole subgroups and pairs."""
    rng, profile = np.random.default_rng(width), DEVICES[device]
    lanes = np.arange(profile.subgroup_size)
    rows = [rng.integers(0, 64, lanes.size), lanes, lanes * 8 % 64, lanes // 2, lanes // 4 * 3 % 64, lanes * 0 + 5]
    rows += [np.where(rng.random(lanes.size) < 0.6, row, -1) for row in rows]
    addresses = [np.where(row >= 0, row * width, -1) for row in rows]
    found = patterns_of(requests(addresses, width, kind), width, profile)
    swizzle = Swizzle((Term(3, 2), Term(4, 1, 2)))
    for move in (lambda index: index, swizzle.of):
        moved = [np.where(row >= 0, move(np.maximum(row, 0)) * width, -1) for row in rows]
        expected = sum(profile.shared_wavefronts(np.maximum(a, 0), width, a >= 0, kind == "store") for a in moved)
        assert found.wavefronts(move) == expected


def test_atomics_are_charged_by_lane():
    """32 lanes on two words of one bank: 32 wavefronts; with the words in two banks, 16."""
    rows = [np.where(np.arange(32) % 2, 32 * 4, 0)]
    found = patterns_of(requests(rows, 4, "atomic", "atomicAdd"), 4, NVIDIA)
    assert (found.wavefronts(), found.wavefronts(Swizzle((Term(5, 1),)).of)) == (32, 16)


def test_padded_rows_are_known_by_what_is_left_out():
    used = [row * 17 + column for row, column in product(range(4), range(16))]
    found = patterns_of(requests([[4 * at for at in used[n : n + 32]] for n in (0, 32)], 4), 4, NVIDIA)
    assert found.padded_rows(4 * 17) == (17, 16)
    assert found.padded_rows(4 * 18) is None
    whole = patterns_of(requests([[4 * at for at in range(32)], [4 * at for at in range(32, 64)]], 4), 4, NVIDIA)
    assert whole.padded_rows(64) is None


def matmul():
    (plan,) = plans([ROOT / "shaders" / "matmul.toml"], Request(kernel="matmul", dims={"M": 64, "N": 64, "K": 64}))
    return plan.case(plan.shapes[0])


def literal(text):
    """The matmul with numbers for its constants: the pitch of A is no name, and its second buffer starts at 1088."""
    text = text.replace("SLOTS * TM * TK_PAD>", "2 * 1088>").replace("slot * TM * TK_PAD", "slot * 1088u")
    for factor in (2, 3, 4):
        text = text.replace(f"{factor}u * TK_PAD", f"{17 * factor}u")
    text = re.sub(r"override TK_PAD.*\n", "", text).replace("TK_PAD", "17u")
    for name, number in (("TM", "64u"), ("TN", "64u"), ("TK", "16u")):
        text = re.sub(rf"\b{name}\b", number, re.sub(rf"const {name} = .*\n", "", text))
    return text


@pytest.mark.parametrize("is_literal", [False, True])
def test_both_tiles_of_a_matmul_are_free_of_conflicts_in_the_least_memory(is_literal, tmp_path):
    """64 x 16 and 16 x 64 floats, twice: 16,384 bytes. A's pitch of 17 costs 16,896, and does not end its conflicts."""
    case = matmul()
    if is_literal:
        rng = np.random.default_rng(1)
        arrays = {name: rng.standard_normal((64, 64), np.float32) for name in ("X", "W")}
        arrays |= {"dims": np.array([64, 64, 64, 0], np.uint32), "Y": np.zeros(4096, np.float32)}
        (tmp_path / "matmul.wgsl").write_text(literal(check_module(case.kernel).source.text))
        (plan,) = plans([tmp_path / "matmul.wgsl"], Request(grid=(1, 1, 1), arrays=arrays))
        case = plan.case(plan.shapes[0])
    for by, most in [("wavefronts", None)] if is_literal else [("time", None), ("wavefronts", 16_384)]:
        report = advise(case, Options(values=(16, 17), most_bytes=most, by=by))
        assert [each.written.excess for each in report.advice] == [128, 2432]
        found = report.together if by == "wavefronts" else report.fewest
        assert found is not None
        assert (found.excess, found.bytes, found.refused) == (0, 16_384, None)


def test_the_diff_applies_and_the_changed_file_costs_what_was_said(tmp_path):
    file = tmp_path / "transpose.wgsl"
    file.write_text(FORMS["written"])
    told = command("advise", file, "--grid", "2,2", "--pads", "33..33", "--by", "wavefronts", "--patch")
    assert (told.exit_code, told.stdout.startswith("--- a/")) == (1, True)
    diff = told.stdout.replace(str(file)[1:], "transpose.wgsl")
    applied = subprocess.run(["git", "apply"], cwd=tmp_path, input=diff, text=True, capture_output=True)
    assert applied.returncode == 0, applied.stderr
    x = np.arange(4096, dtype=np.float32)
    run = bankshot.simulate(file.read_text(), grid=(2, 2), bindings={"x": x, "y": np.zeros_like(x)})
    assert (run.counters["shared_wavefronts"], run.counters["workgroup_memory_bytes"]) == (256, 4096)
    assert (run.outputs["y"].reshape(64, 64) == x.reshape(64, 64).T).all()


def test_apply_changes_the_file_and_then_nothing_is_better(tmp_path):
    file = tmp_path / "transpose.wgsl"
    file.write_text(FORMS["number"])
    done = command("advise", file, "--grid", "2,2", "--pads", "32..32", "--by", "wavefronts", "--apply")
    assert (done.exit_code, f"changed: {file}" in done.stdout) == (1, True)
    assert "tile[tile_at(row * 32u + at.x)] = x" in file.read_text()
    assert command("advise", file, "--grid", "2,2", "--pads", "32..32", "--by", "wavefronts").exit_code == 0


PADDED = """\
@group(0) @binding(0) var<storage, read> x: array<f32, 4096>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 4096>;
const P = 33u;
const Q = 33u;
var<workgroup> a: array<f32, 32u * P>;
var<workgroup> b: array<f32, 32u * Q>;
@compute @workgroup_size(32, 8)
fn main(@builtin(local_invocation_id) at: vec3<u32>) {
    for (var row = at.y; row < 32u; row += 8u) {
        a[row * P + at.x] = x[row * 32u + at.x];
        b[row * Q + at.x] = x[1024u + row * 32u + at.x];
    }
    workgroupBarrier();
    for (var row = at.y; row < 32u; row += 8u) { y[row * 32u + at.x] = a[at.x * P + row] + b[at.x * Q + row]; }
}
"""


@pytest.mark.parametrize("by", BY)
def test_one_of_two_arrays_makes_room_where_either_alone_would(by, tmp_path):
    """Two tiles of 32 rows of 33 take 8,448 bytes, 128 less without one of the pads. Both are best as written."""
    (tmp_path / "padded.wgsl").write_text(PADDED)
    done = command("advise", tmp_path / "padded.wgsl", "--grid", "1", "--by", by, "--most-bytes", "8320")
    assert done.exit_code == 1
    changed = [line for line in done.stdout.splitlines() if line.startswith(("+const P", "+const Q"))]
    assert changed in (["+const P = 32u;"], ["+const Q = 32u;"])


def test_a_layout_has_to_fit_into_the_memory_asked_for(tmp_path):
    """33 words a row take 4,224 bytes; a swizzle takes 4,096."""
    case = case_of(tmp_path, FORMS["const"])
    (advice,) = advise(case, Options(values=(33, 33), most_bytes=4_100)).advice
    assert [trial.refused for trial in advice.trials if trial.pitch == 33] == [
        "more than 4,100 bytes of workgroup memory"
    ]
    assert (advice.best.pitch, advice.best.bytes, advice.best.excess) == (32, 4096, 0)


TILES = {
    "a column": ("tile[at * 16u + i % 16u]", "tile[at + i % 16u * 16u]"),
    "every other": ("tile[i * 2u + at % 2u]", "tile[(i * 2u + at) % 64u]"),
    "steps of 40": ("tile[(i * 40u + at) % 256u]", "tile[(i * 24u + at) % 256u]"),
    "by fours": ("tile[i * 4u + at % 4u]", "tile[at % 4u * 64u + i]"),
}
TILE = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32, 32>;
{function}
var<workgroup> tile: array<f32, 256>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {{
    for (var at = 0u; at < 4u; at += 1u) {{ {stored} = f32(i); }}
    workgroupBarrier();
    for (var at = 0u; at < 4u; at += 1u) {{ y[i] += {loaded}; }}
}}
"""


def wavefronts(name, swizzle):
    """The wavefronts of a text with a swizzle that is written by hand, or none."""
    stored, loaded = TILES[name]
    if swizzle:
        stored, loaded = (f"tile[moved({each[5:-1]})]" for each in (stored, loaded))
    function = f"fn moved(index: u32) -> u32 {{ return {swizzle.text('index', 'u')}; }}" if swizzle else ""
    text = TILE.format(function=function, stored=stored, loaded=loaded)
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(32, np.float32)}, probes="banks")
    return run.counters["shared_wavefronts"]


@pytest.mark.parametrize("name", TILES)
def test_the_best_swizzle_costs_what_the_best_of_all_runs_costs(name, tmp_path):
    stored, loaded = TILES[name]
    (tmp_path / "tile.wgsl").write_text(TILE.format(function="", stored=stored, loaded=loaded))
    (plan,) = plans([tmp_path / "tile.wgsl"], Request(grid=(1, 1, 1)))
    found = advise(plan.case(plan.shapes[0]), Options(values=(0, 0), by="wavefronts")).advice  # few: they save no time
    written = wavefronts(name, None)
    best = min(written, *(wavefronts(name, swizzle) for swizzle in swizzles(256, 256, most_terms=1)))
    assert best < written
    assert found[0].best.wavefronts <= best  # it may have a second term


STRIDED = """\
@group(0) @binding(0) var<storage, read> x: array<f32, 4096>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    tile[i] = x[i * 64u];
    workgroupBarrier();
    y[i] = tile[63u - i];
}
"""


def test_a_cost_that_no_layout_changes_is_named(tmp_path):
    """Each lane's load of `x` is a sector of its own; 32 lanes would fit into 4."""
    file = tmp_path / "strided.wgsl"
    file.write_text(STRIDED)
    done = command("advise", file, "--grid", "1")
    assert done.exit_code == 0
    assert "note: tile has no bank conflicts" in done.stdout
    assert "strided.wgsl:5  load of x, 100% of the excess sectors" in done.stdout
    assert "32 sectors per request, where 4 would do" in done.stdout


WIDE = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32, 32>;
const STRIDE = 64u;
var<workgroup> tile: array<f32, 32u * STRIDE>;
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 32u; k++) { tile[i * STRIDE + k] = f32(k); }
    workgroupBarrier();
    y[i] = tile[i * STRIDE + 31u];
}
"""


def test_rows_are_not_narrowed_to_what_one_case_uses(tmp_path):
    """The data fill half of each row: with a pitch of 33, 65 or a swizzle there is no conflict."""
    (tmp_path / "wide.wgsl").write_text(WIDE)
    (plan,) = plans([tmp_path / "wide.wgsl"], Request(grid=(1, 1, 1)))
    (advice,) = advise(plan.case(plan.shapes[0]), Options(values=(33, 65), by="wavefronts")).advice
    narrow = next(trial for trial in advice.trials if trial.pitch == 33)
    assert (narrow.refused, narrow.excess) == (None, 0)
    assert (advice.best.pitch, advice.best.excess, advice.best.bytes) == (64, 0, advice.written.bytes)
    assert advice.best_pad.pitch == 65


def test_an_array_without_conflicts_keeps_its_size(tmp_path):
    text = WIDE.replace("i * STRIDE + k", "k * STRIDE + i").replace("i * STRIDE + 31u", "STRIDE + i")
    (tmp_path / "wide.wgsl").write_text(text)
    (plan,) = plans([tmp_path / "wide.wgsl"], Request(grid=(1, 1, 1)))
    (advice,) = advise(plan.case(plan.shapes[0]), Options(values=(32, 64))).advice
    assert any(trial.pitch < 64 and trial.refused is None for trial in advice.trials)
    assert advice.ok
