"""Asks a real GPU what single accesses cost: one warp, one instruction, counted by the profiler.

`python measure_accesses.py TABLE.csv [--seed N] [--count N]` on a machine with an NVIDIA GPU, CuPy and Nsight Compute
(`ncu` on the path). Draws patterns of addresses, runs each in a launch of its own, and writes one row a pattern:

    memory                  shared or global
    access                  load, store or atomic (an add that returns the old value)
    bytes_per_lane          2, 4, 8 or 16
    wavefronts              of shared memory; empty for global
    sectors                 of global memory; empty for shared
    lane_byte_addresses     of 32 lanes, `-` for a lane that is switched off
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

LANES = 32
SHARED_BYTES = 32 * 1024
GLOBAL_BYTES = 1 << 20
WIDTHS = {"load": (2, 4, 8, 16), "store": (2, 4, 8, 16), "atomic": (4,)}
COUNTERS = {
    ("shared", "load"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ("shared", "store"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ("shared", "atomic"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    ("global", "load"): "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    ("global", "store"): "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    ("global", "atomic"): "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
}


class Pattern(NamedTuple):
    memory: str
    access: str
    width: int  # bytes per lane
    addresses: list[int]  # in bytes, -1 for a lane that is switched off

    @property
    def kernel(self) -> str:
        return f"{self.memory}_{self.access}_{self.width}"


# ---- patterns ----------------------------------------------------------------------------------------


def draw(random: random.Random) -> Pattern:
    """One pattern: an order of elements, perhaps folded so that lanes share, shifted, and with lanes switched off."""
    memory = random.choice(("shared", "global"))
    access = random.choice(("load", "load", "store", "store", "atomic"))
    width = random.choice(WIDTHS[access])
    room = (SHARED_BYTES if memory == "shared" else GLOBAL_BYTES) // width
    elements = _elements(random, room)
    if random.random() < 0.3:
        fold = random.choice((1, 2, 3, 4, 8, 16))  # lanes that differ in these bits alone share an element
        elements = [elements[lane & ~fold] for lane in range(LANES)]
    for _ in range(random.choice((0, 0, 0, 1, 2, 5))):
        elements[random.randrange(LANES)] = random.randrange(room)
    on = _mask(random)
    return Pattern(memory, access, width, [width * e if keep else -1 for e, keep in zip(elements, on, strict=True)])


def _elements(random: random.Random, room: int) -> list[int]:
    """An element for each lane, below `room`."""
    lanes = list(range(LANES))
    match random.randrange(6):
        case 0:  # rows of a tile with a pitch
            columns, pitch = random.choice((2, 4, 8, 16)), random.choice((*range(1, 40), 64, 65, 100, 128))
            order = [lane // columns * pitch + lane % columns for lane in lanes]
        case 1:  # a stride
            stride = random.randrange(0, 66)
            order = [lane * stride for lane in lanes]
        case 2:  # a permutation of neighbours
            order = random.sample(lanes, LANES)
        case 3:  # an exclusive-or swizzle
            mask, pitch = random.randrange(LANES), random.choice((1, 2, 8, 32, 33))
            order = [(lane ^ mask) * pitch for lane in lanes]
        case 4:  # anywhere within a window
            window = random.choice((2, 4, 8, 16, 32, 64, 256, 1024))
            order = [random.randrange(window) for _ in lanes]
        case _:  # anywhere
            order = [random.randrange(room) for _ in lanes]
    start = random.choice((0, 0, 1, 2, 3, 5, 8, 16, random.randrange(room)))
    return [(element + start) % room for element in order]


def _mask(random: random.Random) -> list[bool]:
    match random.randrange(5):
        case 0 | 1:
            return [True] * LANES
        case 2:
            share = random.choice((0.1, 0.3, 0.5, 0.8, 0.95))
            return [random.random() < share for _ in range(LANES)]
        case 3:
            first, count = random.randrange(LANES), random.randrange(1, LANES)
            return [first <= lane < first + count for lane in range(LANES)]
        case _:
            bit, value = 1 << random.randrange(5), random.choice((0, 1))
            return [bool(lane & bit) == bool(value) for lane in range(LANES)]


# ---- on the GPU --------------------------------------------------------------------------------------

_REGISTER = {2: ("short", "h", "b16"), 4: ("int", "r", "b32")}


def _kernel(memory: str, access: str, width: int) -> str:
    """CUDA of one access. PTX keeps it as written; lanes with an address below zero skip it."""
    words = max(1, width // 4)
    kind, letter, bits = _REGISTER[min(width, 4)]
    vector = f".v{words}" if words > 1 else ""
    values = [f"x{i}" for i in range(words)]

    def operands(first: int) -> str:
        each = ", ".join(f"%{first + i}" for i in range(words))
        return f"{{{each}}}" if words > 1 else each

    inputs = ", ".join(f'"{letter}"({v})' for v in values)
    outputs = ", ".join(f'"={letter}"({v})' for v in values)
    place = '"r"(q)' if memory == "shared" else '"l"(q)'
    match access:
        case "load":
            asm = f'"ld.volatile.{memory}{vector}.{bits} {operands(0)}, [%{words}];" : {outputs} : {place} : "memory"'
        case "store":
            asm = f'"st.volatile.{memory}{vector}.{bits} [%0], {operands(1)};" :: {place}, {inputs} : "memory"'
        case _:
            asm = f'"atom.{memory}.add.u32 %0, [%1], 1;" : "=r"(x0) : {place} : "memory"'
    where = (
        "unsigned q = (unsigned)__cvta_generic_to_shared(tile) + a;"
        if memory == "shared"
        else "unsigned long long q = (unsigned long long)data + a;"
    )
    return f"""
    __global__ void {memory}_{access}_{width}(int* lanes, char* data) {{
        __shared__ __align__(16) char tile[{SHARED_BYTES}];
        int a = lanes[threadIdx.x];
        {kind} {", ".join(f"{v} = a" for v in values)};
        {where}
        if (a >= 0) {{ asm volatile({asm}); }}
        lanes[{LANES} + threadIdx.x] = {" ^ ".join(values)};
        if (lanes == nullptr) {{ data[0] = tile[a]; }}
    }}"""


def launch(patterns: list[Pattern]) -> None:
    """One launch for each pattern, in order. Meant to run under the profiler."""
    import cupy  # pyright: ignore[reportMissingImports]

    kinds = sorted({(p.memory, p.access, p.width) for p in patterns})
    module = cupy.RawModule(code='extern "C" {' + "".join(_kernel(*kind) for kind in kinds) + "}")
    data = cupy.zeros(GLOBAL_BYTES, cupy.int8)
    lanes = cupy.zeros((len(patterns), 2 * LANES), cupy.int32)
    lanes[:, :LANES] = cupy.asarray([p.addresses for p in patterns], cupy.int32)
    for number, pattern in enumerate(patterns):
        module.get_function(pattern.kernel)((1,), (LANES,), (lanes[number], data))
    cupy.cuda.Device().synchronize()


def measure(patterns: list[Pattern]) -> list[dict[str, str]]:
    """The rows of the table. Global accesses have the kernel's own reading and writing of `lanes` taken off."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patterns.json"
        path.write_text(json.dumps(patterns))
        command = ["ncu", "--clock-control", "none", "--csv", "--metrics", ",".join(COUNTERS.values())]
        command += ["--kernel-name", "regex:^(shared|global)_", sys.executable, __file__, "--launch", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    table = "".join(line for line in done.stdout.splitlines(keepends=True) if line.startswith('"'))
    by_launch: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(table)):
        values = by_launch.setdefault(row["ID"], {})
        values[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        values[row["Kernel Name"].split("(")[0]] = 1
    return [_row(pattern, values) for pattern, values in zip(patterns, by_launch.values(), strict=True)]


_OWN_SECTORS = LANES * 4 // 32  # each kernel loads one word a lane, and stores one


def _row(pattern: Pattern, counted: dict[str, float]) -> dict[str, str]:
    assert pattern.kernel in counted, "launches came back in another order"
    number = int(counted[COUNTERS[pattern.memory, pattern.access]])
    if pattern.memory == "global" and pattern.access != "atomic":
        number -= _OWN_SECTORS
    return {
        "memory": pattern.memory,
        "access": pattern.access,
        "bytes_per_lane": str(pattern.width),
        "wavefronts": str(number) if pattern.memory == "shared" else "",
        "sectors": str(number) if pattern.memory == "global" else "",
        "lane_byte_addresses": " ".join("-" if a < 0 else str(a) for a in pattern.addresses),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2400)
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.launch:
        launch([Pattern(*p) for p in json.loads(args.path.read_text())])
        return
    generator = random.Random(args.seed)
    rows = measure([draw(generator) for _ in range(args.count)])
    with args.path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
