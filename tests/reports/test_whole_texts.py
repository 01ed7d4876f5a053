"""The whole text of reports, over the run that `test_reports` makes up: every figure follows from it by hand."""

import json
import re

import pytest

from tests.reports import test_reports as made_up

world, Finding = made_up.world, made_up.Finding
ONES = ("--bind", "x=ones:f32:64", "--set", "N=64")


def lines(folder, *arguments, code):
    """The lines of a command's output, without what differs from run to run."""
    result = made_up.command(arguments[0], folder, *arguments[1:])
    assert result.exit_code == code, result.output
    text = re.sub(r"(; took|took:) .*?(?=;|\n)", r"\1", result.stdout.replace(str(folder), "FOLDER"))
    return [line.rstrip() for line in text.rstrip().splitlines()]


HEAD = """\
twice  N=64
  FOLDER/twice.wgsl, entry main, grid 2 x 1 x 1, charged as nvidia
"""
COST = """
  where the cost is
  1  twice.wgsl:5  load of x, 100% of the excess sectors
     | let a = x[id.x]; // loads
     16 sectors per request, where 8 would do
     help: let adjacent lanes access adjacent elements of x

"""
TOTALS = """
  workgroups                              2
  invocations                             64
  workgroup memory                        0 bytes
  working invocations                     100.0%
  SIMT efficiency                         100.0%
  barriers, summed over workgroups        0
  floating point operations (fma = 2)     64
  useful FLOPs                            100.0%
  requested global memory                 512 bytes
  FLOP per byte requested                 0.125
  atomic operations                       0
  serialized atomic lanes                 0
  workgroup memory wavefronts             12, ideal 4 (x3)
  global memory sectors                   24, ideal 16 (x1.5)
  all 2 workgroups ran

   utilization: 50.0%, workgroup balance      share
 ──────────────────────────────────────────────────
   lane efficiency                           100.0%
   useful lane efficiency                     75.0%
   workgroup balance                          50.0%

  one waits


 line issued lanes        idle  wavefronts     sectors  source  (subgroups that issued; charged/ideal)
"""
DECLARED = """\
    1                                                   @group(0) @binding(0) var<storage, read> x: array<f32>;
    2                                                   @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    3                                                   @compute @workgroup_size(32)
    4                                                   fn main(@builtin(global_invocation_id) id: vec3<u32>) {
"""
CHARGED = """\
    5      2   50%                                16/8      let a = x[id.x]; // loads
    6      2  100%                                   8      y[id.x] = a * 2.0;
"""
LAST = """\
  idle, in percent: g behind a guard, o past the workgroup, d diverged

  took:
"""
GPU = "  GPU: llvmpipe (LLVM 15) (CPU, Vulkan), driver llvmpipe Mesa 22.3.6, wgpu 0.32.0\n"


def test_a_clean_case(world):
    world.workgroup_bytes = 16_896
    passed = """\
  ok       y against reference twice: 64 elements, rule bound, share of the bound used 0 (limit 1)
  ok       y against wgpu on llvmpipe (LLVM 15): bit for bit, 64 elements
  ok       barriers  0 as expected
  ok       flops  64 as expected
  no findings
  note: beyond WebGPU's defaults, bytes of workgroup memory: 16,896 is over maxComputeWorkgroupStorageSize, \
which is 16,384
"""
    end = "audit: 1 of 1 cases clean; compared with reference (1), wgpu (1), expected counters (1); took"
    clean = "  clean: compared with reference, wgpu, expected counters\n"
    whole = HEAD + clean + COST + passed + GPU + TOTALS + DECLARED + CHARGED + "    7" + 51 * " " + "}\n" + LAST
    assert lines(world.folder, "audit", *ONES, "-v", code=0) == [*whole.splitlines(), "", end]


# y[0] is 2 for the simulator and 3 for the GPU, y[63] is 3 and 2: 2**22 steps of a float from 2 to 3.
DIFFERS = """\
  DIFFERS  y against wgpu on llvmpipe (LLVM 15): 2 of 64 elements (3.12%), rule exact, up to 4,194,304 ULP apart
         index  ours  theirs    our bits  their bits        ULP  written by
           [0]     2       3  0x40000000  0x40400000  4,194,304  workgroup (0, 0, 0), lane 0
          [63]     3       2  0x40400000  0x40000000  4,194,304  workgroup (1, 0, 0), lane 31
           likely fma contraction: with fma fused, all agree
"""
REFERENCE = """\
  DIFFERS  y against reference twice: 1 of 64 elements (1.56%), rule bound, share of the bound used inf (limit 1), \
up to 4,194,304 ULP apart
         index  ours  theirs    our bits  their bits        ULP  bound  used  written by
          [63]     3       2  0x40400000  0x40000000  4,194,304      0   inf  workgroup (1, 0, 0), lane 31
           likely fma contraction: with fma fused, all agree
"""
WRONG = """\
  EXCEEDS  what nvidia allows, bytes of workgroup memory: 20,001 is over maxComputeWorkgroupStorageSize, \
which is 20,000
  DIFFERS  flops  64, the manifest expects 65
"""
FOUND = """\
twice.wgsl:5:13: error: both write y
  7 times in all
twice.wgsl:5:13: warning: reads past the end of x
  7 times in all
twice.wgsl:5:13: info: divides by zero
"""
FAILED = "  failed: compared with reference, wgpu, expected counters\n"
END = "audit: 0 of 1 cases clean; 1 failed; compared with reference (1), wgpu (1), expected counters (1); took"


@pytest.fixture
def wrong(world):
    """The made-up kernel with all that can be wrong, in an order that no report keeps."""
    world.findings = [
        Finding("division-by-zero", "info", "divides by zero", count=1),
        Finding(),
        Finding("redundant-barrier", "warning", "this barrier orders nothing"),
        Finding("race", "error", "both write y"),
    ]
    world.gpu_error = world.sim_error = 1.0
    world.workgroup_bytes = 20_001
    text = made_up.MANIFEST.replace('flops = "N"', 'flops = "N + 1"') + 'allow = ["redundant-barrier"]\n'
    (world.folder / "twice.toml").write_text(text)
    return world


def test_a_case_with_all_that_can_be_wrong(wrong):
    passed = """\
  ok       barriers  0 as expected
  accepted by the manifest: redundant-barrier, 7 times: this barrier orders nothing
"""
    whole = HEAD + FAILED + REFERENCE + DIFFERS + FOUND + WRONG + COST + passed + GPU + TOTALS
    counted = [*(whole + CHARGED + LAST).splitlines(), "", END]
    assert lines(wrong.folder, "audit", *ONES, "--listing", "counted", code=1) == counted
    headings = "          kernel  shape  workgroups       reference      wgpu           counters  findings     notes"
    row = "NOT OK    twice   N=64   2                DIFFERS y      DIFFERS y      DIFFER 1  FOUND out-of-bounds, race"
    table = lines(wrong.folder, "audit", *ONES, "--format", "table", "--listing", "counted", code=1)
    assert table[0] == headings + "  seconds"
    assert re.fullmatch(row + r"  -      \d\.\d\d", table[1])
    assert table[2:] == counted


def test_failures_in_short(wrong):
    short = """\
twice.wgsl:5:13: error: both write y
  7 times in all
  warning  out-of-bounds, 7 times: reads past the end of x
  info     division-by-zero, 1 times: divides by zero
"""
    cost = "  cost     twice.wgsl:5  load of x, 100% of the excess sectors: 8 sectors per request, where 4 would do\n"
    cost += "           help: let adjacent lanes access adjacent elements of x\n"
    printed = lines(wrong.folder, "audit", "--sweep", code=1)
    start = printed.index("twice  N=32")
    assert "\n".join(printed[start + 2 :]).partition("  DIFFERS  y against wgpu")[0].startswith(FAILED)
    at = printed.index("twice.wgsl:5:13: error: both write y")
    rest = short + WRONG.replace("64, the manifest expects 65", "32, the manifest expects 33") + cost
    end = ["", "  failed in 2 more cases of twice: N=64, N=96", "",
           "audit: 0 of 3 cases clean; 3 failed; compared with reference (3), wgpu (3), expected counters (3); took; "
           "-v shows each case in full"]  # fmt: skip
    assert printed[at:] == [*rest.splitlines(), *end]


def test_a_difference_from_a_gpu(wrong):
    head = HEAD.replace("charged as nvidia", "simulated as lavapipe") + GPU
    end = "\ndiff: 0 of 1 cases clean; 1 failed; compared with wgpu (1)"
    whole = head + DIFFERS + "  failed: compared with wgpu\n  took:\n" + end
    assert lines(wrong.folder, "diff", *ONES, code=1) == whole.splitlines()


def test_annotations_of_all_that_is_wrong(wrong):
    printed = lines(wrong.folder, "audit", *ONES, "--format", "github", code=1)
    entry = "file=FOLDER/twice.wgsl,line=4,col=4,endColumn=8,title=bankshot%3A"
    plain = "file=FOLDER/twice.wgsl,title=bankshot%3A"
    line = 1 + made_up.MANIFEST.splitlines().index('flops = "N"')
    worst = "worst [0]: 2 for 3, written by workgroup (0, 0, 0), lane 0"
    assert [text.partition("; likely")[0] for text in printed if text.startswith("::")] == [
        f"::error {entry} output::twice.wgsl:4: y against wgpu on llvmpipe (LLVM 15): 2 of 64 elements (3.12%25), "
        f"rule exact, up to 4,194,304 ULP apart; {worst}",
        f"::error {plain} race::both write y",
        f"::error {entry} limit::twice.wgsl:4: beyond what nvidia allows, bytes of workgroup memory: 20,001 is over "
        "maxComputeWorkgroupStorageSize, which is 20,000",
        f"::error file=FOLDER/twice.toml,line={line},title=bankshot%3A counter::twice.toml:{line}: flops  64, "
        "the manifest expects 65",
        f"::warning {plain} out-of-bounds::reads past the end of x",
        f"::notice {plain} division-by-zero::divides by zero",
    ]


def test_json_of_all_that_is_wrong(wrong):
    (case,) = json.loads("\n".join(lines(wrong.folder, "audit", *ONES, "--json", code=1)))["cases"]
    truths = {"reference": 64, "wgpu on llvmpipe (LLVM 15)": 64}
    worst = {"index": [63], "actual": 3.0, "expected": 2.0, "actual_bits": "0x40400000", "expected_bits": "0x40000000",
             "ulp": 1 << 22, "owner": "workgroup (1, 0, 0), lane 31", "bound": 0.0, "used": "inf"}  # fmt: skip
    common = {"output": "y", "ok": False, "elements": 64, "unbounded": 0, "expects_change": True, "unchecked": 0,
              "max_abs": 1.0, "max_ulp": 1 << 22, "outcome": "failed", "held": True, "allowed": "", "doubts": [],
              "likely": {"class": "fma contraction", "evidence": "with fma fused, all agree"}}  # fmt: skip
    assert case["outputs"][0] == common | {
        "against": "reference twice", "rule": {"name": "bound"}, "mismatches": 1, "score": "inf", "limit": 1.0,
        "measure": "share of the bound used", "bitwise": False, "share": 1 / 64, "worst": [worst],
    }  # fmt: skip
    zero = {"index": [0], "actual": 2.0, "expected": 3.0, "actual_bits": "0x40000000", "expected_bits": "0x40400000",
            "owner": "workgroup (0, 0, 0), lane 0"}  # fmt: skip
    assert case["outputs"][1] == common | {
        "against": "wgpu on llvmpipe (LLVM 15)", "rule": {"name": "exact"}, "mismatches": 2, "score": 2.0, "limit": 0.0,
        "measure": "elements with other bits", "bitwise": True, "share": 2 / 64,
        "worst": [{**each, "bound": None, "used": None} for each in (worst | zero, worst)],
    }  # fmt: skip
    assert case["compared"] == [{"output": "y", "elements": 64, "truths": truths, "unchecked": 0, "reason": None}]
    assert (case["outcome"], case["unchecked"], case["not_compared"]) == ("failed", [], [])
    assert case["expected_counters"] == [
        {"counter": "barriers", "expected": 0, "actual": 0, "ok": True},
        {"counter": "flops", "expected": 65, "actual": 64, "ok": False},
    ]
    assert case["limits"] == [
        {"limit": "maxComputeWorkgroupStorageSize", "what": "bytes of workgroup memory", "value": 20_001,
         "maximum": 20_000, "of": "device", "ok": False}
    ]  # fmt: skip
    assert case["coverage"] == {"how": "all", "workgroups": 2, "ran": 2, "why": "", "classes": [], "unwatched": 0,
                                "untried_orders": 0}  # fmt: skip
    assert case["cost"] == [
        {"file": "FOLDER/twice.wgsl", "line": 5, "code": "let a = x[id.x]; // loads", "what": "load of x",
         "resource": "excess sectors", "excess": 8, "share": 1.0, "weight": pytest.approx(8 / 36), "lines": 1,
         "why": "16 sectors per request, where 8 would do",
         "help": "let adjacent lanes access adjacent elements of x", "saved_us": None}
    ]  # fmt: skip
    assert [(f["code"], f["severity"], f["count"], f["allowed"]) for f in case["findings"]] == [
        ("division-by-zero", "info", 1, False),
        ("out-of-bounds", "warning", 7, False),
        ("redundant-barrier", "warning", 7, True),
        ("race", "error", 7, False),
    ]


def test_a_gpu_that_the_reference_contradicts_has_no_likely_cause(world):
    """The simulator is right there: what explains its own differences does not explain those of the GPU."""
    world.gpu_error = 1.0
    (world.folder / "twice.toml").write_text(made_up.MANIFEST + 'y = { rule = "ulp", max = 4 }\nfree = ["y"]\n')
    head = HEAD.replace("charged as nvidia", "simulated as lavapipe") + GPU
    checks = """\
  ok       y against reference twice: 64 elements, rule ulp max 4, ULP apart at most 0 (limit 4)
  DIFFERS  y against reference twice by wgpu on llvmpipe (LLVM 15): 1 of 64 elements (1.56%), rule ulp max 4, \
ULP apart at most 4.19e+06 (limit 4), up to 4,194,304 ULP apart
         index  ours  theirs    our bits  their bits        ULP  bound  used
           [0]     3       2  0x40400000  0x40000000  4,194,304      0   inf
  failed: compared with reference, wgpu
  took:

diff: 0 of 1 cases clean; 1 failed; compared with reference (1), wgpu (1)
"""
    assert lines(world.folder, "diff", *ONES, code=1) == (head + checks).splitlines()
