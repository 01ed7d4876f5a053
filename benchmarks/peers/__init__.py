"""Other programs that run kernels on a CPU, on the same data.

SwiftShader is another adapter of wgpu. Oclgrind and Numba's CUDA simulator do not read WGSL: they run a transliteration
from this folder, named after the kernel, with the same tiles, barriers and order of additions. They are slower by
orders of magnitude, so they compute a smaller product of the same tiles, at two depths. The difference in work divided
by the difference in time is their speed, so that startup does not count. The result of a peer is compared with the
reference before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import NoAdapter
from bankshot.oracle.judge.case_run import expected_outputs
from bankshot.oracle.manifests.manifest import Case

from ..ways import Simulator, Way, on_wgpu
from . import numba_cuda, oclgrind

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program.

    `missing()` says how to install it, None if it is installed. `run(case, text)` runs a transliteration, and returns
    the seconds of the whole process and the output. `depths`: those of the two products that it computes.
    """

    name: str
    what: str
    suffix: str  # of the transliteration's file name
    depths: tuple[int, int]
    missing: Callable[[], str | None]
    run: Callable[[Case, Path], tuple[float, NDArray[Any]]]


PEERS = (
    Peer("Oclgrind", "outputs only", ".cl", (16, 144), oclgrind.missing, oclgrind.plain),
    Peer("Oclgrind, races", "--data-races", ".cl", (16, 144), oclgrind.missing, oclgrind.races),
    Peer("Numba's CUDA simulator", "outputs only", "_cuda.py", (16, 64), numba_cuda.missing, numba_cuda.run),
)
SMALL = {"M": 64, "N": 128}  # the sizes of their products: two workgroups


def peers(case: Case) -> tuple[list[Way], list[str]]:
    """Return the peers that can run `case`, and a sentence for each that cannot."""
    found: list[Way] = []
    absent: list[str] = []
    for peer in PEERS:
        text = HERE / f"{case.kernel.name}{peer.suffix}"
        why = peer.missing() if text.exists() else f"there is no {text.name}"
        if why is None:
            found.append(way(peer, case, text))
        else:
            absent.append(f"{peer.name}: {why}")
    try:
        found.append(on_wgpu("wgpu on SwiftShader", case, wgpu_client.require_adapter("swiftshader")))
    except NoAdapter as error:
        absent.append(str(error))
    return found, absent


def way(peer: Peer, case: Case, text: Path) -> Way:
    """Return the way in which a peer runs the kernel of `case`, transliterated in `text`."""
    kernel = case.kernel
    shallow, deep = (kernel.case(kernel.shape({**SMALL, "K": depth})) for depth in peer.depths)
    _prove(peer, deep, text)
    flops = Simulator.of(deep, wgpu_client.FALLBACK).flops - Simulator.of(shallow, "lavapipe").flops
    sizes = " x ".join(map(str, SMALL.values()))
    what = f"{peer.what}; {sizes}, from depth {peer.depths[0]} to {peer.depths[1]}"
    return Way(peer.name, flops, lambda: peer.run(deep, text)[0] - peer.run(shallow, text)[0], what)


def _prove(peer: Peer, case: Case, text: Path) -> None:
    """Check that the transliteration computes the same as the kernel. Raises `AssertionError`."""
    _, output = peer.run(case, text)
    ((name, expected),) = expected_outputs(case).items()
    np.testing.assert_allclose(output, expected.value.reshape(-1), 1e-4, 1e-4, err_msg=f"{peer.name}: {name}")
