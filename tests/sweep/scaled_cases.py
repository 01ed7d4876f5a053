"""A kernel that sweeps are tested with, its cases, and their rows."""

import csv
from concurrent.futures import Executor, Future
from pathlib import Path

from bankshot.oracle.sweep import cases, sweep
from tests.scaling import manifest

# 32 invocations of each workgroup; x is doubled up to its end. The second store of the `racy` kernel is everybody's.
SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(32)
fn scale(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    if id.x >= arrayLength(&x) { return; }
    tile[2u * i] = x[id.x];
    y[id.x] = 2.0 * tile[2u * i];
#ifdef RACY
    y[0] = f32(i);
#endif
}
"""
EXPECT = '\n[expect]\nunchecked = { y = "costs are swept" }\n'
MANIFEST = manifest('\n[[sweep]]\nN = [32, 64]\n\n[[sweep]]\nN = 96\ncost = "heavy"\n', EXPECT)
RACY = MANIFEST.replace("[bind.x]", "defines = { RACY = 1 }\n\n[bind.x]")


class Here(Executor):
    """An executor that runs each call immediately, in this process, and records it."""

    def __init__(self):
        self.groups = 0

    def submit(self, function, /, *arguments, **named):
        self.groups += 1
        future = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def wanted(*devices, path="scale.toml", **dims):
    return cases([path], dims=dims, devices=devices or ("nvidia",))


def rows_of(asked, **options):
    """Return the rows in the order of their cases, without the columns that differ from run to run."""
    rows = {row["key"]: row for row in sweep(asked, **{"executor": Here(), **options})}
    return [{name: value for name, value in rows[case.key].items() if name != "seconds"} for case in asked]


def table(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))
