"""Goldens: the accepted counters of a run, in total and by line, and the bits of its outputs.

    golden/NAME.json   counters, in total and by line; digests of the outputs; the owner, and what made the golden
    golden/NAME.npz    the outputs themselves, if requested, so that a difference can be shown

Only counters and outputs are compared. The simulator, the adapter and line numbers are recorded for information: lines
are matched by their text (`bankshot.oracle.goldens.golden_lines`). `bankshot.oracle.goldens.golden_files` defines where
goldens are stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from ...sim.device_files import shipped
from ...sim.disk_cache import replacing, write
from ...sim.fast_dataclass import frozen
from ...sim.models import DEVICES
from ...sim.wgsl.regular_files import require_regular
from ..comparison.bits import Array, as_given
from ..comparison.compare import Comparison, compare
from ..diagnosis.mismatch import Diagnosis
from ..errors import UsageError
from .golden_lines import Change, Line, changes, lines_of

if TYPE_CHECKING:
    from ...sim import Run
    from ...sim.bindings.binding import Key, Output

SCHEMA = 1
UNCHANGED, WRITTEN, MISSING, CHANGED, OTHER_OWNER, OTHER_DEVICE = (
    "held",
    "written",
    "missing",
    "changed",
    "foreign",
    "device",
)


@frozen
class Golden:
    """One golden. `owner`: the manifest or test file, beside the folder, that it belongs to. `arrays` are stored apart
    from the JSON."""

    owner: str
    title: str
    grid: tuple[int, ...]
    device: str
    simulator: str
    adapter: str | None
    counters: Mapping[str, float]
    lines: tuple[Line, ...]
    outputs: Mapping[str, str]  # dtype, shape and SHA-256
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])

    def text(self) -> str:
        """Return the golden as JSON with sorted keys, and each counter and each line of the source on a row."""
        data: dict[str, Any] = {**asdict(self), "schema": SCHEMA, "lines": []}
        del data["arrays"]
        rows = ",\n    ".join(json.dumps(asdict(line), sort_keys=True, ensure_ascii=False) for line in self.lines)
        whole = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        return whole.replace('\n  "lines": []', f'\n  "lines": [\n    {rows}\n  ]', 1) if rows else whole

    def write(self, path: Path) -> None:
        """Write the files atomically, as other processes may be reading them."""
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = path.with_suffix(".npz")
        if self.arrays:
            with replacing(arrays) as made:
                _save(made, self.arrays)
        write(path, self.text().encode())
        if not self.arrays:
            arrays.unlink(missing_ok=True)


def _save(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file. `np.savez` cannot take arrays that are called as its parameters."""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read(path: Path) -> Golden:
    """Read a golden, with its outputs if they are stored. Raises `UsageError` where the file is no golden."""
    try:
        data: dict[str, Any] = json.loads(require_regular(path).read_text(encoding="utf-8"))
        schema, lines = data.pop("schema"), tuple(Line(**line) for line in data.pop("lines"))
        if schema != SCHEMA:
            raise UsageError(f"{path}: has schema {schema}, and this version reads {SCHEMA}; make it anew")
        kept = path.with_suffix(".npz")
        arrays = dict(np.load(kept, allow_pickle=False)) if kept.exists() else {}
        return Golden(grid=tuple(data.pop("grid")), lines=lines, arrays=arrays, **data)
    except (UsageError, MemoryError):
        raise
    except Exception as error:  # NumPy's readers of headers and archives raise many kinds
        raise UsageError(f"{path}: cannot be read as a golden: {error}; delete it and make it anew") from None


def of_run(run: Run, *, folder: Path, owner: str, title: str, adapter: object = None, arrays: bool = False,
           source: Path | None = None, free: Collection[str] = ()) -> Golden:  # fmt: skip
    """Make the golden of a run. Paths of source files are relative to `folder`, which holds the manifest or test.

    `free`: outputs to leave out, because WGSL leaves their bits open and a reference judges them. `arrays`: store the
    outputs, too. `source`: the file that lines without a file of their own belong to.
    """
    from ... import sim

    outputs = _arrays({key: output for key, output in run.outputs.items() if key not in free})
    return Golden(
        owner=owner,
        title=title,
        grid=tuple(run.grid),
        device=run.device.name,
        simulator=sim.__version__,
        adapter=None if adapter is None else str(adapter),
        counters=dict(run.counters),
        lines=lines_of(run.sites, folder, source),
        outputs={name: digest(array) for name, array in outputs.items()},
        arrays=outputs if arrays else {},
    )


def _arrays(outputs: Mapping[Key, Output | list[Array]]) -> dict[str, Array]:
    """Return every output as an array. Levels of a texture, and outputs bound by group and number, get dotted names."""
    found: dict[str, Array] = {}
    for key, output in outputs.items():
        name = ".".join(map(str, key)) if isinstance(key, tuple) else str(key)
        if isinstance(output, list):
            found |= {f"{name}.{level}": array for level, array in enumerate(output)}
        else:
            found[name] = as_given(output)
    return found


def digest(array: Array) -> str:
    """Return what a golden stores of an output: its dtype, shape and SHA-256."""
    dtype = array.dtype.name if array.dtype.names is None else f"struct{array.dtype.itemsize}"
    shape = ",".join(map(str, array.shape))
    return f"{dtype}[{shape}] {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"


@frozen
class OutputChange:
    """An output whose digest changed. `comparison` is set where the golden stores the array."""

    output: str
    before: str
    after: str
    comparison: Comparison | None = None

    def __str__(self) -> str:
        if self.comparison is not None:
            c = self.comparison
            return f"{self.output}: {c.mismatches:,} of {c.elements:,} elements differ from the golden"
        was, is_ = (text.partition(" ")[0] or "no output" for text in (self.before, self.after))
        return f"{self.output}: {'differs from the golden' if was == is_ else f'{was} -> {is_}'}"


@frozen
class Verdict:
    """The result of comparing a run with its golden.

    `state`: a key of `STATES`. `changes`: of counters, the worst first. `advice`: what to do about them. `likely`: the
    likely cause. `held`: the outputs whose bits the golden has, if they were compared or written. `new`: what would be
    written, where the golden is missing or the run has changed.
    """

    path: Path
    state: str
    changes: tuple[Change, ...] = ()
    outputs: tuple[OutputChange, ...] = ()
    advice: str = ""
    likely: Diagnosis | None = None
    held: tuple[str, ...] = ()
    new: Golden | None = None

    @property
    def ok(self) -> bool:
        return self.state in (UNCHANGED, WRITTEN)

    @property
    def unchecked(self) -> bool:
        """Whether nothing was compared, as the golden is of another device."""
        return self.state == OTHER_DEVICE

    @property
    def differs(self) -> bool:
        """Whether the run fails."""
        return not (self.ok or self.unchecked)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything that changed, and the likely cause."""
        cause = () if self.likely is None else (str(self.likely),)
        return (*map(str, self.outputs), *cause, *map(str, self.changes))

    @property
    def headline(self) -> str:
        """The name of the golden, and the state in words."""
        return f"golden {self.path.name}: {STATES[self.state]}"

    def __str__(self) -> str:
        return "\n".join([self.headline, *self.sentences, *filter(None, [self.advice])])


STATES = {
    UNCHANGED: "unchanged",
    WRITTEN: "written",
    MISSING: "there is none",
    CHANGED: "the run has changed",
    OTHER_OWNER: "belongs to another owner",
    OTHER_DEVICE: "not compared",
}


def check(path: Path, new: Golden, update: bool, how: str) -> Verdict:
    """Compare a run with the golden at `path`. `update`: write the golden if it is missing or the run has changed.
    `how`: the command that updates it, for the advice. Raises `UsageError` where the file cannot be read."""
    if not path.exists():
        if not update:
            return Verdict(path, MISSING, advice=f"make it with {how}, look at it, and commit it", new=new)
        new.write(path)
        return Verdict(path, WRITTEN, held=tuple(new.outputs))
    old = read(path)
    if old.owner != new.owner or old.title != new.title:
        return _foreign(path, old, new)
    if old.device != new.device and not update:
        words = f"it was made for device {old.device}, and this run is charged as {new.device}; {_of_device(old)}"
        return Verdict(path, OTHER_DEVICE, advice=words)
    different, held = _output_changes(old, new), tuple(new.outputs)
    moved = changes(old.counters, old.lines, new.counters, new.lines)
    stale = old.device != new.device or bool(old.arrays) != bool(new.arrays)
    if update and (different or moved or stale):
        new.write(path)
        return Verdict(path, WRITTEN, moved, different, held=held)
    if different or moved:
        other = old.simulator != new.simulator
        made = f"it was made by bankshot {old.simulator}, this is {new.simulator}; " if other else ""
        advice = f"{made}if this is what you want, {how} writes it anew"
        return Verdict(path, CHANGED, moved, different, advice, held=held, new=new)
    return Verdict(path, UNCHANGED, held=held)


def _of_device(old: Golden) -> str:
    """How to compare with a golden of another device."""
    if old.device.partition("+")[0] in (*DEVICES, *shipped()):
        return f"use --device {old.device}, or make it anew"
    return "no such device is shipped; use --device with its file, or make it anew"


def _foreign(path: Path, old: Golden, new: Golden) -> Verdict:
    theirs, ours = (f"{golden.owner} ({golden.title})" for golden in (old, new))
    return Verdict(path, OTHER_OWNER, advice=f"it belongs to {theirs}, and {ours} has the same name; rename one")


def _output_changes(old: Golden, new: Golden) -> tuple[OutputChange, ...]:
    found: list[OutputChange] = []
    for name in sorted({*old.outputs, *new.outputs}):
        before, after = old.outputs.get(name, ""), new.outputs.get(name, "")
        if before != after:
            found.append(OutputChange(name, before, after, _compared(new.arrays.get(name), old.arrays.get(name))))
    return tuple(found)


def _compared(made: Array | None, kept: Array | None) -> Comparison | None:
    """Compare two arrays bit for bit; None where one is missing, or their shapes or dtypes differ."""
    if made is None or kept is None or made.shape != kept.shape or made.dtype != kept.dtype or made.dtype.names:
        return None
    return compare(made, kept)
