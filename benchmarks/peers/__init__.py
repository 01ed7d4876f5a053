"""Other programs that run kernels on a CPU, on the same numbers as we.

SwiftShader is one more adapter of wgpu. Oclgrind and Numba's CUDA simulator do not read WGSL: they run a
transliteration that lies here under the name of the kernel, with the same tiles, barriers and order of additions. They
are slower by orders of magnitude, so they do a smaller product of the same tiles, at two depths: what the deeper takes
longer, for the work that it does more, is their speed, and starting up costs them nothing. What a peer computes is held
against the reference before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import NoAdapter
from bankshot.oracle.judge.case_run import expected_outputs
from bankshot.oracle.manifests.manifest import Case

from ..ways import Simulator, Way, on_wgpu
from . import numba_cuda, oclgrind

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program. `missing()`: what to do to have it, None where it is here. `run(case, text)`: runs a
    transliteration; seconds of the whole, and the output. `depths`: of the products that it is given."""

    name: str
    what: str
    suffix: str  # of the transliteration
    depths: tuple[int, int]
    missing: Callable[[], str | None]
    run: Callable[[Case, Path], tuple[float, np.ndarray]]


PEERS = (
    Peer("Oclgrind", "outputs only", ".cl", (16, 144), oclgrind.missing, oclgrind.plain),
    Peer("Oclgrind, races", "--data-races", ".cl", (16, 144), oclgrind.missing, oclgrind.races),
    Peer("Numba's CUDA simulator", "outputs only", "_cuda.py", (16, 64), numba_cuda.missing, numba_cuda.run),
)
SMALL = {"M": 64, "N": 128}  # of the products that these get: two workgroups


def peers(case: Case) -> tuple[list[Way], list[str]]:
    """The peers that can do the work of `case`, and, of those that cannot, why."""
    found, absent = [], []
    for peer in PEERS:
        text = HERE / f"{case.kernel.name}{peer.suffix}"
        why = peer.missing() if text.exists() else f"nobody has written {text.name}"
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
    """What a peer does of the kernel of `case`, in the transliteration `text`."""
    kernel = case.kernel
    shallow, deep = (kernel.case(kernel.shape({**SMALL, "K": depth})) for depth in peer.depths)
    _prove(peer, deep, text)
    flops = Simulator.of(deep, wgpu_client.FALLBACK).flops - Simulator.of(shallow, "lavapipe").flops
    sizes = " x ".join(map(str, SMALL.values()))
    what = f"{peer.what}; {sizes}, from depth {peer.depths[0]} to {peer.depths[1]}"
    return Way(peer.name, flops, lambda: peer.run(deep, text)[0] - peer.run(shallow, text)[0], what)


def _prove(peer: Peer, case: Case, text: Path) -> None:
    """That the transliteration computes what the kernel does."""
    _, output = peer.run(case, text)
    ((name, expected),) = expected_outputs(case).items()
    np.testing.assert_allclose(output, expected.value.reshape(-1), 1e-4, 1e-4, err_msg=f"{peer.name}: {name}")
