"""Profiles the kernels of `kernels.cu` on a real GPU, in all and line by line.

`python measure_kernels.py TABLE.csv` on a machine with an NVIDIA GPU, CuPy, nvcc and Nsight Compute (`ncu`, and its
Python module on PYTHONPATH or beside it). One row for each kernel, shape, line and kind of access:

    kernel, sizes   sizes as `name=value` with spaces between
    line            the WGSL that makes the access, as the comment in `kernels.cu` has it; empty: of the whole kernel
    access          shared load, shared store, global load or global store
    active_lanes    threads that executed it with a true predicate
    wavefronts      of shared memory
    requests        of global memory, for whole kernels
    sectors         of global memory
"""

from __future__ import annotations

import argparse
import csv
import glob
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROUNDS: list[tuple[str, dict[str, int]]] = [
    ("matmul", {"M": 128, "N": 192, "K": 80}),
    ("matmul", {"M": 100, "N": 84, "K": 52}),
    ("matmul_at", {"K": 128, "N": 192, "M": 80}),
    ("matmul_at", {"K": 100, "N": 84, "M": 51}),
    ("reduction", {"N": 8192}),
]
ACCESSES = {"LDS": "shared load", "STS": "shared store", "LDG": "global load", "STG": "global store"}
WHOLE = {
    ("shared load", "wavefronts"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ("shared store", "wavefronts"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ("global load", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    ("global store", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    ("global load", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    ("global store", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
}
BY_LINE = {
    "active_lanes": "thread_inst_executed_true",
    "wavefronts": "memory_l1_wavefronts_shared",
    "sectors": "memory_l2_theoretical_sectors_global",
}
COLUMNS = ("kernel", "sizes", "line", "access", "active_lanes", "wavefronts", "requests", "sectors")


def launch(cubin: str) -> None:
    """Every round once. Meant to run under the profiler."""
    import cupy  # pyright: ignore[reportMissingImports]

    module = cupy.RawModule(path=cubin)
    for kernel, sizes in ROUNDS:
        if kernel == "reduction":
            groups = sizes["N"] // 1024
            module.get_function(kernel)((groups,), (256,), (cupy.ones(sizes["N"], "f4"), cupy.zeros(groups, "f4")))
            continue
        rows, columns, depth = sizes.values()
        arrays = [cupy.ones(n, "f4") for n in (rows * depth, depth * columns, rows * columns)]
        grid = (-(-columns // 64), -(-rows // 64))
        module.get_function(kernel)(grid, (16, 16), (*arrays, *map(cupy.uint32, (rows, columns, depth))))
    cupy.cuda.Device().synchronize()


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        cubin, report = f"{folder}/kernels.cubin", f"{folder}/report.ncu-rep"
        subprocess.run(
            ["nvcc", "-arch=native", "-cubin", "-lineinfo", "-o", cubin, str(HERE / "kernels.cu")], check=True
        )
        metrics = ",".join([*WHOLE.values(), *BY_LINE.values()])
        command = ["ncu", "--clock-control", "none", "--section", "SourceCounters", "--metrics", metrics, "-o", report]
        names = "|".join(sorted({kernel for kernel, _ in ROUNDS}))
        command += ["--kernel-name", f"regex:^({names})$", sys.executable, __file__, "--launch", cubin]
        subprocess.run(command, check=True)
        return _rows(report)


def _rows(report: str) -> list[dict[str, Any]]:
    sys.path += sorted(glob.glob("/opt/nvidia/nsight-compute/*/extras/python"))
    import ncu_report  # pyright: ignore[reportMissingImports]

    actions = ncu_report.load_report(report).range_by_idx(0)
    source = (HERE / "kernels.cu").read_text().splitlines()
    rows = []
    for number, (kernel, sizes) in enumerate(ROUNDS):
        action = actions.action_by_idx(number)
        assert action.name() == kernel, (action.name(), kernel)
        shape = {"kernel": kernel, "sizes": " ".join(f"{name}={value}" for name, value in sizes.items())}
        whole: dict[str, dict[str, int]] = {}
        for (access, column), metric in WHOLE.items():
            whole.setdefault(access, {})[column] = int(action.metric_by_name(metric).as_double())
        rows += [{**shape, "access": access, **columns} for access, columns in whole.items()]
        rows += [{**shape, **row} for row in _lines(action, source)]
    return rows


def _lines(action: Any, source: list[str]) -> list[dict[str, Any]]:
    """One row for each line and kind of access."""
    counted: dict[tuple[str, str], Counter[str]] = {}
    for column, name in BY_LINE.items():
        metric = action.metric_by_name(name)
        places = metric.correlation_ids()
        for i in range(metric.num_instances()):
            place = places.as_uint64(i)
            words = action.sass_by_pc(place).replace(".", " ").split()
            opcode = next((opcode for opcode in ACCESSES if opcode in words), None)
            if opcode is None:
                continue
            line = source[action.source_info(place).line() - 1].partition(" // ")[2]
            assert line, (action.name(), action.source_info(place).line())
            counted.setdefault((line, ACCESSES[opcode]), Counter())[column] += metric.as_uint64(i)
    return [{"line": line, "access": access, **columns} for (line, access), columns in sorted(counted.items())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.launch:
        launch(str(args.path))
        return
    with args.path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(measure())


if __name__ == "__main__":
    main()
