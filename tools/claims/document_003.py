"""Document 003: products with f16, INT8, NF4 and Q8_0 weights, and six ideas for them, each beside its before.

The sketches of the ideas are in `document_003_sketches`, their estimates in `document_003_estimates`.
"""

from __future__ import annotations

from .bench import against_reference, case, only_output, run, run_case, same_bits, sites, total
from .ledger import Decision, claim, judge

FORMATS = ("fp16", "int8", "nf4", "q8_0")
BATCH = {"M": 64, "N": 64, "K": 256}
TOKEN = {"M": 1, "N": 64, "K": 2048}
BATCH_SHAPES = "M 64, N 64, K 256; figures scale with M * N * K"
TOKEN_SHAPES = "M 1, N 64, K 2048; figures scale with N * K"


# The kernels that the author has today.
MAT, VEC = "matmul_mat_fp16_published", "matmul_vec_fp16_published"


def _words(size: tuple[int, ...]) -> str:
    return " x ".join(map(str, size))


# ---- 1: as it is -------------------------------------------------------------------------------------


@claim("003.1a", shapes=f"{BATCH_SHAPES}, and {TOKEN_SHAPES}")
def without_workgroup_memory() -> Decision:
    """Today's kernels have 128 threads for one token, and for many 8 x 8, an output each, without workgroup memory."""
    many, one = run(MAT, BATCH, probes="none"), run(VEC, TOKEN, probes="none")
    bytes_, of_one = (int(done.counters["workgroup_memory_bytes"]) for done in (many, one))
    outputs = BATCH["M"] * BATCH["N"] / many.counters["invocations"]
    sizes = [tuple(done.pipeline.workgroup_size) for done in (many, one)]
    return judge(
        bytes_ == 0 and outputs == 1 and sizes == [(8, 8, 1), (128, 1, 1)],
        "as published, the f16 kernel for many tokens has workgroups of {many}, tiles of {bytes:,} bytes in workgroup "
        "memory and {outputs:g} outputs a thread; that for one token {one} and {of_one:,} bytes, for its sums",
        partly=sizes == [(8, 8, 1), (128, 1, 1)],
        many=_words(sizes[0]),
        one=_words(sizes[1]),
        bytes=bytes_,
        of_one=of_one,
        outputs=outputs,
    )


@claim("003.1b", shapes=BATCH_SHAPES)
def repeated_loads() -> Decision:
    """The kernel for many tokens loads the same rows and columns several times from global memory."""
    times = {}
    for kernel in (MAT, "matmul_mat_fp16"):
        made = case(kernel, BATCH)
        done = run_case(made)
        times[kernel] = [total(done, "global_bytes", "load", name) / made.arrays[name].nbytes for name in ("W", "X")]
    return judge(
        min(times[MAT]) > 1,
        "as published, each byte of W and of X is asked for {w:g} and {x:g} times, once for each row and column of "
        "tiles of 32 x 32; without tiles it would be {plain_w:g} and {plain_x:g}",
        w=times[MAT][0],
        x=times[MAT][1],
        plain_w=times["matmul_mat_fp16"][0],
        plain_x=times["matmul_mat_fp16"][1],
    )


@claim("003.1c", shapes=f"{BATCH_SHAPES}, and {TOKEN_SHAPES}")
def without_vector_loads() -> Decision:
    """Today's kernels have no vector loads: they could use vec4 loads more."""
    bytes_ = {
        f"{name} of {kernel}": sorted({site.bytes_per_lane for site in sites(run(kernel, sizes), "load", name)})
        for kernel, sizes in ((MAT, BATCH), (VEC, TOKEN))
        for name in ("W", "X")
    }
    return judge(
        all(each == [2] or each == [4] for each in bytes_.values()),
        "as published, every load takes a vector of four, in bytes: {words}; what is left is that those of W, in f16, "
        "take half of the 16 bytes that a load may have",
        partly=any(max(each) < 16 for each in bytes_.values()),
        words=", ".join(f"{name} {' and '.join(map(str, each))}" for name, each in bytes_.items()),
        bytes_per_lane=bytes_,
    )


# ---- 2: the ideas ------------------------------------------------------------------------------------


def _right(kernel: str, sizes: dict[str, int]):
    """A run whose outputs are right."""
    made = case(kernel, sizes)
    done = run_case(made)
    assert against_reference(made, only_output(done)).ok, kernel
    return done


def pair(before: str, after: str, sizes: dict[str, int]):
    """Runs before and after, whose outputs are right."""
    return [_right(kernel, sizes) for kernel in (before, after)]


def issued(done) -> int:
    """Operations that subgroups issue; loads of the sizes, which compilers keep in registers, left out."""
    return sum(site.executions for site in done.sites if site.name != "dims")


@claim("003.2a", shapes=BATCH_SHAPES)
def idea_1() -> Decision:
    """Idea 1: tiles in workgroup memory spare loads from global memory."""
    today, after = pair(MAT, "matmul_mat_fp16_tiled", BATCH)
    plain = run("matmul_mat_fp16", BATCH)
    sketched = _right("matmul_mat_fp16_sketch", BATCH)
    runs = {"plain": plain, "today": today, "after": after}
    bytes_ = {name: done.counters["global_bytes"] for name, done in runs.items()}
    costs = {
        f"{name}_{when}": done.counters[counter]
        for name, counter in (
            ("wavefronts", "shared_wavefronts"),
            ("ideal", "shared_ideal_wavefronts"),
            ("barriers", "barriers"),
        )
        for when, done in (("after", after), ("sketched", sketched))
    }
    return judge(
        bytes_["after"] < bytes_["today"],
        "without tiles {plain:,} bytes are asked for, with tiles of 16 x 16 {after:,}, {times:.0f} times fewer, "
        "for {wavefronts_after:,} wavefronts of workgroup memory ({ideal_after:,} without conflicts) and "
        "{barriers_after:g} barriers in padded steps of 64, or {wavefronts_sketched:,} ({ideal_sketched:,}) and "
        "{barriers_sketched:g} in steps of 16 without padding, in f16, as sketched; but the kernel as published has "
        "tiles already, of 32 x 32, and asks for {today:,}",
        partly=bytes_["after"] < bytes_["plain"] and same_bits(only_output(plain), only_output(after)),
        times=bytes_["plain"] / bytes_["after"],
        **costs,
        **bytes_,
    )


def _weights_of_a_load(kernel: str) -> float:
    return TOKEN["N"] * TOKEN["K"] / total(run(kernel, TOKEN), "active_lanes", "load", "W")


@claim("003.2b", shapes=f"{BATCH_SHAPES}, and {TOKEN_SHAPES}")
def idea_2() -> Decision:
    """Idea 2: unpacking several weights at a time takes fewer instructions than one by one."""
    fewer, same = {}, True
    for format_ in ("int8", "nf4"):
        for shape, sizes in (("mat", BATCH), ("vec", TOKEN)):
            kernel = f"matmul_{shape}_{format_}"
            before, after = pair(kernel, f"{kernel}_vector", sizes)
            same = same and same_bits(only_output(before), only_output(after))
            fewer[f"{shape} {format_}"] = [
                issued(before) / issued(after),
                before.counters["global_requests"] / after.counters["global_requests"],
            ]
    today = {format_: _weights_of_a_load(f"matmul_vec_{format_}_published") for format_ in ("int8", "nf4")}
    return judge(
        same and min(min(pair) for pair in fewer.values()) > 1,
        "times fewer operations issued / loads: {words}; the same bits; but as published, a load brings {today_int8:g} "
        "weights of INT8 and {today_nf4:g} of NF4 already, which are unpacked together",
        today_int8=today["int8"],
        today_nf4=today["nf4"],
        words=", ".join(f"{name} {issued:.1f} / {loads:.1f}" for name, (issued, loads) in fewer.items()),
        fewer=fewer,
    )


@claim("003.2c", shapes=f"{TOKEN_SHAPES}, in subgroups of 8 to 64")
def idea_3() -> Decision:
    """Idea 3: adding up within subgroups takes less than through workgroup memory."""
    before, after = pair(VEC, "matmul_vec_fp16_subgroup", TOKEN)
    kernels = ("matmul_vec_fp16_subgroup", "matmul_vec_fp16_atomic")
    devices = {"lavapipe": 8, "intel": 16, "nvidia": 32, "amd-cdna": 64}
    right = [
        against_reference(made, only_output(run_case(made, device=name, probes="none"))).ok
        for made in (case(kernel, TOKEN) for kernel in kernels)
        for name in devices
    ]
    atomic = _right(kernels[1], TOKEN)
    figures = {
        f"{name}_{when}": done.counters[name] / TOKEN["N"]
        for name in ("barriers", "shared_wavefronts", "global_sectors")
        for when, done in (("before", before), ("after", after))
    }
    fewer = [figures[f"{name}_after"] < figures[f"{name}_before"] for name in ("barriers", "shared_wavefronts")]
    return judge(
        all(fewer) and all(right),
        "for an output {barriers_after:g} barrier instead of {barriers_before:g} and {shared_wavefronts_after:g} "
        "wavefronts instead of {shared_wavefronts_before:g} as published, where four rows share both, and what is "
        "read of the token: {global_sectors_after:g} sectors instead of {global_sectors_before:g}; where each subgroup "
        "adds to the output atomically, as sketched, {atomic_barriers:g} barriers and {atomic_wavefronts:g} "
        "wavefronts, but {tries:g} tries to exchange a word for {sums:g} sums; right in subgroups of {sizes}",
        partly=any(fewer) and all(right),
        atomic_barriers=atomic.counters["barriers"],
        atomic_wavefronts=atomic.counters["shared_wavefronts"],
        tries=atomic.counters["atomic_turns"] / TOKEN["N"],
        sums=total(atomic, "executions", "subgroup", "subgroupAdd") / TOKEN["N"],
        sizes=", ".join(map(str, devices.values())),
        **figures,
    )


@claim("003.2d", shapes=BATCH_SHAPES)
def idea_4() -> Decision:
    """Idea 4: weights in a texture make better use of caches."""
    names = ("global_requests", "global_sectors", "global_bytes")
    equal = []
    for format_ in ("int8", "nf4"):
        buffer, texture = pair(f"matmul_mat_{format_}_vector", f"matmul_mat_{format_}_texture", BATCH)
        equal.append([buffer.counters[name] == texture.counters[name] for name in names])
    return judge(
        None if all(map(all, equal)) else False,
        "requests, bytes and sectors are as many as from a buffer ({sectors:,} sectors of nf4), texels taken to lie "
        "row by row; how a GPU tiles them and what its texture cache holds is unknown",
        "hit rates of the texture cache, from a profiler of the device",
        sectors=texture.counters["global_sectors"],
    )


@claim("003.2e", shapes=BATCH_SHAPES)
def idea_5() -> Decision:
    """Idea 5: two slots of tiles, one filled while the other is used, halve the barriers of a step."""
    before, after = pair("matmul_mat_fp16_tiled", "matmul_mat_fp16_double", BATCH)
    in_loop = max(site.barriers for site in after.sites if site.kind == "barrier")
    return judge(
        2 * in_loop == before.counters["barriers"]
        and before.counters["global_bytes"] == after.counters["global_bytes"]
        and same_bits(only_output(before), only_output(after)),
        "{in_loop:g} barriers in the loop instead of {before:g}, and {all:g} in all; {bytes_after:,} bytes of "
        "workgroup memory instead of {bytes_before:,}, for {global_bytes:,} bytes of global memory as before: what "
        "it hides is time",
        in_loop=in_loop,
        before=before.counters["barriers"],
        all=after.counters["barriers"],
        bytes_before=before.counters["workgroup_memory_bytes"],
        bytes_after=after.counters["workgroup_memory_bytes"],
        global_bytes=after.counters["global_bytes"],
    )


@claim("003.2f", shapes=TOKEN_SHAPES)
def idea_6() -> Decision:
    """Idea 6: a kernel for one token, four rows to a workgroup, shares what it reads of the token."""
    today, after = pair(VEC, "matmul_vec_fp16_single", TOKEN)
    plain = run("matmul_vec_fp16", TOKEN)
    x = [total(done, "global_bytes", "load", "X") for done in (plain, today, after)]
    return judge(
        x[2] < x[1],
        "with a row a workgroup {plain:,} bytes of the token are asked for, with four {after:,}; but the kernel as "
        "published has four already, {today:,}; {lanes_after:.0%} of the lanes issued are active instead of "
        "{lanes_before:.0%}, with 256 threads instead of 128",
        partly=4 * x[2] == x[0],
        plain=x[0],
        today=x[1],
        after=x[2],
        lanes_before=today.counters["simt_efficiency"],
        lanes_after=after.counters["simt_efficiency"],
    )
