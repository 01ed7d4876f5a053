"""Dispatches to time on a GPU, by family, so that a cost model can be fitted on some families and tested on others.

Most families have several kernels for one job and shape: the order of their times is what a model must predict. At
full size a dispatch is meant to take from 5 us to 5 ms on a GPU with 4.8 TB/s and 132 cores; no buffer exceeds 64 MiB.
Kernels and data are seeded: two runs of `dispatches` give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.hardware.timed.block_sums import compactions, reductions, scans
from tests.hardware.timed.chains import atomics, barriers, chains, workgroup_sizes, workgroup_strides
from tests.hardware.timed.computations import bodies, divergent_loops, maps, thread_sorts
from tests.hardware.timed.copies import copies, gathers
from tests.hardware.timed.dispatch import Timed
from tests.hardware.timed.grids import convolutions_1d, convolutions_2d, stencils
from tests.hardware.timed.histograms import histograms
from tests.hardware.timed.matrix_products import matrix_products
from tests.hardware.timed.rows import attentions, layer_norms, softmaxes
from tests.hardware.timed.sparse import sparse_products
from tests.hardware.timed.transposes import transposes
from tests.hardware.timed.vector_products import packed_products, vector_products

FAMILIES: tuple[Callable[[int], Iterator[Timed]], ...] = (
    transposes,
    matrix_products,
    vector_products,
    packed_products,
    reductions,
    scans,
    compactions,
    histograms,
    stencils,
    convolutions_1d,
    convolutions_2d,
    softmaxes,
    layer_norms,
    attentions,
    sparse_products,
    copies,
    gathers,
    maps,
    bodies,
    divergent_loops,
    thread_sorts,
    chains,
    workgroup_sizes,
    atomics,
    barriers,
    workgroup_strides,
)


def dispatches(scale: int = 1) -> Iterator[Timed]:
    """All dispatches, one in memory at a time.

    `scale` divides their sizes, down to what their kernels need; of those that become equal, the first is given.
    """
    seen: set[tuple[str, str, str]] = set()
    for family in FAMILIES:
        for timed in family(scale):
            name = (timed.family, timed.kernel, timed.shape)
            if name not in seen:
                seen.add(name)
                yield timed
