"""A kernel, its manifest and a test of it, for pytest within pytest."""

SHADER = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 32 * 33>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    t[i * 33u] = f32(i);
    workgroupBarrier();
    y[i] = 2.0 * t[(31u - i) * 33u];
}
"""

MANIFEST = """\
[kernel]
source = "k.wgsl"
dims = { N = 32 }
dispatch = [1]
[bind.y]
dtype = "f32"
shape = ["N"]
init = "zeros"
[[sweep]]
N = [32, 64]
[[sweep]]
N = 96
cost = "heavy"
[expect]
golden = true
"""

REASON = "as the manifest says: costs matter"
PLAIN = MANIFEST.replace("golden = true\n", 'bank_conflicts = 0\nunchecked = { y = "costs matter" }\n')

TEST = """\
def test_run(bankshot):
    run = bankshot.run("k.wgsl", grid=1, bindings={"y": bytes(128)})
    assert run.excess_wavefronts == 0
    assert run.utilization.lane_efficiency >= 0.9
    assert run.counters["barriers"] == 1
    assert not run.findings
    bankshot.golden(run)
    bankshot.golden(run, "again", outputs=True)
    bankshot.golden(run)
"""

CONFLICTS = ("33", "32")  # all lanes in one bank
