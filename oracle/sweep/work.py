"""The cases of a sweep: a case is a kernel in one shape, with the costs of one device, and becomes one row.

The key of a case is a digest of everything that determines its row: the shader's text, the manifest, the data, the
sizes, the device's parameters and the sources of Bankshot. A case whose key already has a row need not run.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ... import sim
from ...sim.device_files import find
from ...sim.fast_dataclass import frozen
from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
from ..judge.device_comparison import lanes_of, parse_devices
from ..manifests.cases import Plan, Request, plans
from ..manifests.manifest import Kernel, Shape
from ..manifests.reflection import check_module

# Fields of a kernel that do not determine a row: its location, its other shapes, and the rules for GPUs.
_IGNORED = frozenset(("path", "source", "shapes", "gpu_rules", "include_dirs", "preprocess", "questions"))
ROOT = Path(__file__).parents[2]


@frozen
class SweepCase:
    """One case of a sweep. `device`: a profile's name, or its file; `key`: a digest of all that determines its row."""

    plan: Plan
    shape: Shape
    device: str
    key: str

    @property
    def title(self) -> str:
        return f"{self.plan.kernel.name} {self.shape} {self.device}".replace("  ", " ")


def cases(
    paths: Sequence[str | Path],
    *,
    dims: Mapping[str, Sequence[int]] | None = None,
    devices: Sequence[str] = ("nvidia",),
    kernels: Sequence[str] = (),
    request: Request | None = None,
    skipped: list[str] | None = None,
) -> list[SweepCase]:
    """Return every combination of kernels, sizes and devices.

    The kernels are those in `paths`, optionally only those named in `kernels`. The sizes are those in `dims`; without
    it, the shapes of the manifests that `request` selects. Raises `UsageError`; if `skipped` is given, a kernel that
    lacks a dim goes there, in words, where another has them all.
    """
    asked, names = request or Request(), parse_devices(",".join(devices))
    found = [
        plan
        for kernel in kernels or (asked.kernel,)
        for plan in plans([Path(path) for path in paths], replace(asked, kernel=kernel))
    ]
    lacking = {
        id(plan): lacks for plan in found if (lacks := [dim for dim in dims or {} if dim not in plan.kernel.dims])
    }
    if skipped is not None and len(lacking) < len(found):
        skipped += [f"{plan.kernel.name}: skipped, as it has no dim {', '.join(lacking[id(plan)])}"
                    for plan in found if id(plan) in lacking]  # fmt: skip
        found = [plan for plan in found if id(plan) not in lacking]
    return [case for plan in found for case in _cases(plan, dims or {}, names)]


def _cases(plan: Plan, dims: Mapping[str, Sequence[int]], devices: Sequence[str]) -> Iterator[SweepCase]:
    digest = _digest(plan)
    for shape in _shapes(plan, dims):
        for device in devices:
            yield SweepCase(plan, shape, device, _key(digest, shape, device))


def _shapes(plan: Plan, dims: Mapping[str, Sequence[int]]) -> Iterator[Shape]:
    if not dims:
        yield from plan.shapes
        return
    if not plan.kernel.dims:
        raise UsageError(f"{plan.kernel.path}: {plan.kernel.name} has no dims")
    for sizes in itertools.product(*dims.values()):
        yield plan.kernel.shape({**plan.request.dims, **dict(zip(dims, sizes, strict=True))})


def key_now(case: SweepCase) -> str:
    """Compute the key of a case from the present files and this process's version of Bankshot."""
    return _key(_digest(case.plan), case.shape, case.device)


# ---- groups that share a run -------------------------------------------------------------------------


def group_by_run(cases: Sequence[SweepCase]) -> list[tuple[SweepCase, ...]]:
    """Group the cases, each once, such that one simulated run serves a group.

    The cases of a group differ only in the device, and all of these devices execute the same lanes alike.
    """
    groups: dict[tuple[object, ...], list[SweepCase]] = {}
    for case in {case.key: case for case in cases}.values():
        groups.setdefault((id(case.plan), str(case.shape), lanes_of(find(case.device))), []).append(case)
    return [*map(tuple, groups.values())]


# ---- keys --------------------------------------------------------------------------------------------


def _key(digest: str, shape: Shape, device: str) -> str:
    return _sha256(digest, str(shape), repr(find(device)), version())[:24]


def _digest(plan: Plan) -> str:
    """Return a digest of everything that the cases of a kernel share."""
    kernel, request = plan.kernel, plan.request
    facts = {f.name: getattr(kernel, f.name) for f in fields(kernel) if f.name not in _IGNORED}
    files = [file.read_bytes() for file in _files(kernel) if file.is_file()]
    given = {name: _contents(data) for name, data in request.arrays.items()}
    return _sha256(_text(plan), _plain(facts), *files, _plain(given), repr(request.grid))


def _files(kernel: Kernel) -> Iterator[Path]:
    """Yield the files that a kernel needs besides its shader: data, and a user-defined reference."""
    yield from (binding.file for binding in kernel.bindings if binding.file)
    file, own, _ = (kernel.reference or "").rpartition(":")
    if own:
        yield kernel.path.parent / file


def _text(plan: Plan) -> str:
    """Return the shader's text with all includes expanded; if the front end refuses it, return the error."""
    try:
        return check_module(plan.kernel).source.text
    except (WgslError, UsageError) as error:
        return str(error)


def _plain(value: Any) -> str:
    """Return a text that is equal for equal values, whatever the order of their sets and mappings."""
    if isinstance(value, Mapping):
        pairs = cast(Mapping[Any, Any], value).items()
        return f"{{{','.join(sorted(f'{_plain(k)}:{_plain(v)}' for k, v in pairs))}}}"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_plain, cast(frozenset[Any], value))))}}}"
    return repr(value)


def _contents(data: Any) -> str:
    """Return a text for the data of a binding: an array, a list of them, or the fields of a sampler."""
    if isinstance(data, np.ndarray):
        array = cast(NDArray[Any], data)
        return f"{array.dtype}{array.shape}{_sha256(array.tobytes())}"
    return str(list(map(_contents, cast(list[Any], data)))) if isinstance(data, list) else _plain(data)


def _sha256(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@cache
def version() -> str:
    """Return the version of Bankshot with a digest of its sources, such as `0.1.0+1f2e3d4c`."""
    sources = sorted(path for folder in ("sim", "oracle") for path in (ROOT / folder).rglob("*.py"))
    parts = ((path.relative_to(ROOT).as_posix(), path.read_bytes()) for path in sources)
    return f"{sim.__version__}+{_sha256(*itertools.chain.from_iterable(parts))[:8]}"


# ---- command line ------------------------------------------------------------------------------------


def parse_dims(text: str) -> dict[str, tuple[int, ...]]:
    """Parse sizes by name: numbers, and ranges that include both ends. A part without a name belongs to the last one.

    >>> parse_dims("M=64:256:64,N=768,K=1,4")
    {'M': (64, 128, 192, 256), 'N': (768,), 'K': (1, 4)}
    """
    sizes: dict[str, tuple[int, ...]] = {}
    name = ""
    for part in text.split(","):
        head, equals, tail = part.rpartition("=")
        name = head.strip() if equals else name
        if not name:
            raise UsageError(f"--dims {text}: `{part}` must follow a name, as in N={tail}")
        if equals and name in sizes:
            raise UsageError(f"--dims {text}: {name} is given twice")
        sizes[name] = (*sizes.get(name, ()), *_range(text, tail))
    return sizes


def _range(text: str, part: str) -> range:
    if not re.fullmatch(r"\d{1,9}(:\d{1,9}){0,2}", part.strip(), re.ASCII):
        raise UsageError(f"--dims {text}: `{part}` is not a size; write N=768, N=64,128 or N=64:512:64")
    first, *more = map(int, part.split(":"))
    last, step = (*more, 1)[:2] if more else (first, 1)
    if first > last or step < 1:
        raise UsageError(f"--dims {text}: `{part}` must go up from 0 or more, by 1 or more")
    return range(first, last + 1, step)
