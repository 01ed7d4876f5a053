"""Run one shader in the simulator and on wgpu, on generated inputs, and reach a verdict with its evidence.

`trials(shader)` yields one `Trial` for a module that cannot run, otherwise one for each compute entry point. Every
outcome is a verdict, not an exception, except that a crash of the process is left to the caller.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.check.pipeline import GRANTED
from ...sim.wgsl.diagnostics import Crash, Diagnostic, WgslError
from ...sim.wgsl.source import Source
from ...sim.wgsl.typed import Module
from .. import wgpu_client
from ..diagnosis import kept_floats
from ..diagnosis.exact_arithmetic import with_exact_arithmetic
from ..diagnosis.simulator_reruns import place
from ..errors import DriverDied, GpuError, UsageError
from ..guesses import invented_inputs
from ..guesses.invented_inputs import RECIPES, Recipe
from ..manifests.rendering_stages import left_out, without_rendering
from .candidate import Candidate, Outputs, Run
from .difference import (
    Array,
    Codes,
    Difference,
    Mask,
    differences,
    differing,
    differing_texels,
    errors,
    holds_floats,
    texel_errors,
    texels,
)
from .embedded import Shader
from .evidence import EVIDENCE, compare_exactly

if TYPE_CHECKING:
    from ...sim.run.result import Run as SimulatorRun

_Number = TypeVar("_Number", bound=np.generic)


@frozen
class Verdict:
    """A possible outcome. `about` is module or entry; `good`: it shows no fault of Bankshot."""

    about: str
    good: bool
    words: str


VERDICTS = {
    "no-compute": Verdict("module", True, "valid, without a compute entry point"),
    "not-wgsl": Verdict("module", True, "not standard WGSL"),
    "refused": Verdict("module", False, "refused here, accepted by wgpu"),
    "equal": Verdict("entry", True, "equal to wgpu, bit for bit"),
    "within": Verdict("entry", True, "equal to wgpu within the errors that WGSL allows"),
    "explained": Verdict("entry", True, "different on wgpu for a known reason"),
    "unchecked": Verdict("entry", True, "different on wgpu in what has no error bound, and so not compared"),
    "only-here": Verdict("entry", True, "runs here, refused by wgpu"),
    "not-started": Verdict("entry", True, "refused here and by wgpu"),
    "endless": Verdict("entry", True, "exceeds its budget here, whatever the inputs"),
    "no-data": Verdict("entry", False, "needs inputs that cannot be generated"),
    "differs": Verdict("entry", False, "different on wgpu for an unknown reason"),
    "unsupported": Verdict("entry", False, "refused here, runs on wgpu"),
    "wgpu-died": Verdict("entry", True, "the driver crashed, or exceeded the time limit"),
    "too-slow": Verdict("entry", False, "exceeded the time limit here"),
    "crash": Verdict("entry", False, "internal error of Bankshot"),
}


@frozen
class Trial:
    """The outcome for a module (`entry` None) or for an entry point. `rerun`: what shows why outputs may differ.
    `seconds` go by stage."""

    shader: str
    lines: int
    entry: str | None
    verdict: str
    why: str = ""
    recipe: str = ""
    rerun: str = ""
    seconds: dict[str, float] = field(default_factory=dict[str, float])


# Called before each stage with the entry point and the stage: check, build, simulate or wgpu.
Say = Callable[[str | None, str], None]


def trials(
    shader: Shader,
    adapter: str | None,
    skip: int = 0,
    say: Say = lambda entry, stage: None,
    budget: int | None = None,
) -> Iterator[Trial]:
    """Try a module, without its first `skip` compute entry points. `adapter`: see `wgpu_client.require_adapter`;
    `budget`: that of `bankshot.simulate`."""
    one = _Module(shader, adapter, say, budget)
    module = one.read()
    if isinstance(module, Trial):
        yield module
        return
    points = module.compute_entry_points
    if not points:
        yield one.trial(None, "no-compute")
    for function in points[skip:]:
        yield _Entry(one, module, function).run()


# ---- reading ---------------------------------------------------------------------------------------------

# Reasons why a text is not WGSL, by a pattern in it. The first match is the reason.
_FOREIGN = (
    (r"\$\{\s*([^}\n]*)", "a template: ${%s}"),
    (r"\{\{-?\s*([^}\n]*?)\s*-?\}\}", "a template: {{%s}}"),
    (r"\{%-?\s*([^%\n]*?)\s*-?%\}", "a template: {%% %s %%}"),
    (r"(?m)^\s*#\s*(\w+[^\n]*)", "for another preprocessor: #%s"),
    (r"(?m)^\s*(import\s[^\n;]*)", "for another preprocessor: %s"),
    (r"\b(binding_array|push_constant|acceleration_structure|ray_query|f64|i64|u64|texture_storage_1d_array|"
     r"texture_1d_array|view_index|quad_swap)\b", "an extension of wgpu: %s"),
    (r"\b(\d[\w.]*(?:li|lu|lf))\b", "an extension of wgpu: the literal %s"),
    (r"(?m)^\s*(enable\s+chromium_\w+|requires\s+chromium_\w+|enable\s+wgpu_\w+)", "an extension of one browser: %s"),
)  # fmt: skip


class _Module:
    """One module, with the notes and times that go into its trials."""

    def __init__(self, shader: Shader, adapter: str | None, say: Say, budget: int | None) -> None:
        self.budget = budget
        self.shader = shader
        self.adapter = adapter
        self.say = say
        self.text = shader.text
        self.notes: list[str] = []
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, entry: str | None, name: str) -> Generator[None]:
        """Report a stage, and add up its time. Exits if wgpu dies, so that the caller treats it like a crash here."""
        self.say(entry, name)
        start = time.perf_counter()
        try:
            yield
        except DriverDied as error:
            raise SystemExit(str(error)) from None
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def trial(self, entry: str | None, verdict: str, why: str = "", recipe: str = "", rerun: str = "") -> Trial:
        """Make a trial of the times since the last one, and of the module's notes."""
        seconds, self.seconds = self.seconds, {}
        words = "; ".join(part for part in (why, *self.notes) if part)
        return Trial(self.shader.name, self.text.count("\n") + 1, entry, verdict, words, recipe, rerun, seconds)

    def read(self) -> Module | Trial:
        """Return the checked module, or a trial that says why it cannot run."""
        with self.stage(None, "check"):
            try:
                return self._checked()
            except WgslError as error:
                if module := self._compute_only(error.diagnostics[0]):
                    return module
                refusal = error.diagnostics[0]
            except (Crash, Exception) as error:
                return self.trial(None, "crash", _brief(error))
        place = refusal.span.place if refusal.span else None
        why = f"{refusal.message} ({refusal.code}, line {place.line})" if place else refusal.message
        for pattern, words in _FOREIGN:
            if found := re.search(pattern, self.text):
                return self.trial(None, "not-wgsl", f"{words % found[1].strip()[:40]}; {why}")
        with self.stage(None, "wgpu"):
            theirs = wgpu_client.refusal(wgpu_client.for_wgpu(self.text), self.adapter)
        if theirs is not None:
            return self.trial(None, "not-wgsl", f"{why}; wgpu says: {_first(theirs)}")
        return self.trial(None, "refused", why)

    def _checked(self) -> Module:
        """Check the text; deviations that wgpu tolerates are repaired or accepted, with a note."""
        try:
            return self.check("error")
        except WgslError as error:
            first = error.diagnostics[0]
        if first.code == "non-uniform":
            self.notes.append(f"not standard: {first.message}")
            return self.check("warning")
        if needed := re.search(r"needs the extension '(\w+)'", first.message):
            self.notes.append(f"not standard: `enable {needed[1]};` is missing")
            self.text = f"enable {needed[1]}; {self.text}"
            return self._checked()
        raise WgslError(first)

    def _compute_only(self, refusal: Diagnostic) -> Module | None:
        """Return the module without its vertex and fragment stages, if these alone are wrong."""
        whole, rest = self.text, without_rendering(Source(self.text))
        if rest is None:
            return None
        self.text = rest.text
        try:
            module = self._checked()
        except WgslError:
            self.text = whole
            return None
        self.notes.append(left_out(refusal).message)
        return module

    def check(self, uniformity: str) -> Module:
        from ... import sim

        name, folder = self.shader.name, self.shader.file.parent
        module = sim.check(self.text, name=name, include_dirs=[folder], uniformity=uniformity)
        self.text = module.source.text  # with its includes
        return module


def _first(message: str) -> str:
    return message.strip().splitlines()[0][:200]


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:300]


# ---- running ---------------------------------------------------------------------------------------------


class _Entry:
    """One entry point. Implements `candidate.Candidate`."""

    def __init__(self, owner: _Module, module: Module, function: typed.Function) -> None:
        self.owner = owner
        self.module = module
        self.function = function
        self.name = function.name
        self.exact = False
        self.overrides: dict[Any, Any] = invented_inputs.override_values(module)
        self.grid = invented_inputs.grid(function)

    @property
    def pipeline(self) -> typed.Pipeline:
        return self.module.pipeline(self.name, self.overrides, GRANTED)

    @property
    def text(self) -> str:
        """The text that wgpu receives."""
        return self.owner.text

    def run(self) -> Trial:
        """Run the entry point on both sides, and reach a verdict."""
        try:
            return self._run()
        except WgslError as error:
            return self._unsupported(error)
        except UsageError as error:
            return self._trial("no-data", str(error))
        except (Crash, Exception) as error:
            return self._trial("crash", _brief(error))

    def _trial(self, verdict: str, why: str = "", recipe: Recipe | None = None, rerun: str = "") -> Trial:
        return self.owner.trial(self.name, verdict, why, recipe.name if recipe else "", rerun)

    def _run(self) -> Trial:
        ours = self._simulated()
        if ours.findings("endless-loop"):
            return self._trial("endless", place(ours.findings("endless-loop")[0]))
        try:
            theirs = self.on_wgpu(ours.given)
        except GpuError as error:
            return self._trial("only-here", _first(str(error)), ours.recipe)
        found = self.differences(ours.recipe, ours.outputs, theirs)
        idle = "" if ours.busy else "no output changed"
        verdict, why, rerun = ("equal", idle, "") if not found else self._judged(ours, theirs, found)
        return self._trial(verdict, why, ours.recipe, rerun)

    def _simulated(self) -> Run:
        """Return the first run that stays in bounds, terminates and changes an output.

        Failing that, return the first that stays in bounds and terminates, or else the last one. Overrides may have to
        fit together, as the product of two sizes: where no run stays in bounds, all are 1.
        """
        runs: list[Run] = []
        for values in (self.overrides, invented_inputs.override_values(self.module, whole=1)):
            if runs and (values == self.overrides or any(run.clean for run in runs)):
                break
            self.overrides = values
            for recipe in RECIPES:
                with self.owner.stage(self.name, "build"):
                    given = invented_inputs.bindings(self.pipeline, recipe)
                run = Run(recipe, given, self.simulate(given))
                if run.clean and run.busy:
                    return run
                runs.append(run)
        return next((run for run in runs if run.clean), runs[-1])

    def simulate(self, given: Mapping[str, Any], text: str | None = None, **options: Any) -> SimulatorRun:
        """Run in the simulator, as the device that matches the adapter, the shader's own text or another one.
        `options`: those of `bankshot.simulate`."""
        from ... import sim

        simulate: Callable[..., SimulatorRun] = sim.simulate
        how = {
            "device": wgpu_client.require_adapter(self.owner.adapter).profile or "lavapipe",
            "budget": self.owner.budget,
            "replay": False,  # whether a finding matters makes no difference
            "probes": ("bounds",),
        }
        with self.owner.stage(self.name, "simulate"):
            return simulate(
                self.module if text is None else sim.check(text, uniformity="off"),
                grid=self.grid,
                bindings=given,
                entry=self.name,
                overrides=self.overrides,
                **{**how, **options},
            )

    def on_wgpu(
        self, given: Mapping[str, Any], text: str | None = None, grid: tuple[int, int, int] | None = None
    ) -> dict[str, Array]:
        """Run on wgpu, the shader's own text or another one, which may use `kept_floats.DATA`. Raises `GpuError`."""
        slots = wgpu_client.slots_of(self.function) if text is None else wgpu_client.read_slots(text, self.name)
        with self.owner.stage(self.name, "wgpu"):
            run = wgpu_client.run(
                text or self.text,
                self.name,
                grid or self.grid,
                {**kept_floats.DATA, **given},
                slots=slots,
                overrides=self.overrides,
                adapter=self.owner.adapter,
            )
        return run.outputs

    def _unsupported(self, error: WgslError) -> Trial:
        """Return the verdict on an entry point that the simulator refuses, depending on whether wgpu runs it."""
        why = f"{error.diagnostics[0].message} ({error.diagnostics[0].code})"
        try:
            self.on_wgpu(invented_inputs.bindings(self.pipeline, RECIPES[-1]))
        except (GpuError, UsageError, WgslError) as refusal:
            return self._trial("not-started", f"{why}; {_first(str(refusal))}")
        return self._trial("unsupported", why)

    # ---- judging ----

    def differences(self, recipe: Recipe, ours: Outputs, theirs: Outputs) -> list[Difference]:
        """Compare the outputs of two runs on inputs made by `recipe`."""
        found: list[Difference] = []
        for variable, type_ in self.pipeline.store_types.items():
            if (name := variable.name) in ours:
                pair = ours[name], theirs[name]
                if isinstance(type_, t.Texture):
                    found += texels(name, type_, *pair)
                else:
                    found += differences(name, invented_inputs.layout(type_, recipe), *pair)
        return found

    def with_exact_arithmetic(self) -> tuple[Candidate, list[str]] | None:
        """Return the entry point with exact arithmetic, and in place of which functions (see
        `diagnosis.exact_arithmetic`); None where there is no such text, or where it uses textures, whose texels are
        rounded."""
        made = with_exact_arithmetic(self.pipeline)
        if made is None or any(isinstance(type_, t.Texture) for type_ in self.pipeline.store_types.values()):
            return None
        text, names = made
        owner = _Module(replace(self.owner.shader, text=text), self.owner.adapter, self.owner.say, self.owner.budget)
        module = owner.check("off")
        other = _Entry(owner, module, next(f for f in module.entry_points if f.name == self.name))
        other.overrides, other.grid, other.exact = self.overrides, self.grid, True
        return other, names

    def differing(self, recipe: Recipe, ours: Outputs, theirs: Outputs) -> dict[str, Mask]:
        """Tell for each output which of its words differ, or channels of a texture."""
        return self._by_output(recipe, ours, theirs, differing, differing_texels)

    def errors(self, recipe: Recipe, ours: Outputs, theirs: Outputs) -> dict[str, NDArray[np.float64]]:
        """Return for each output how far its words are off, or channels of a texture."""
        return self._by_output(recipe, ours, theirs, errors, texel_errors)

    def floats(self, recipe: Recipe) -> dict[str, Mask]:
        """Tell for each output which of its words hold floats, or channels of a texture."""
        return {
            v.name: np.asarray(holds_floats(type_))
            if isinstance(type_, t.Texture)
            else np.isin(invented_inputs.layout(type_, recipe)[::2], (invented_inputs.SINGLE, invented_inputs.HALF))
            for v, type_ in self.pipeline.store_types.items()
            if not isinstance(type_, t.Sampler)
        }

    def _by_output(
        self,
        recipe: Recipe,
        ours: Outputs,
        theirs: Outputs,
        words: Callable[[Codes, Array, Array], NDArray[_Number]],
        channels: Callable[[Array, Array], NDArray[_Number]],
    ) -> dict[str, NDArray[_Number]]:
        return {
            v.name: channels(ours[v.name], theirs[v.name])
            if isinstance(type_, t.Texture)
            else words(invented_inputs.layout(type_, recipe), ours[v.name], theirs[v.name])
            for v, type_ in self.pipeline.store_types.items()
            if v.name in ours
        }

    def _judged(self, ours: Run, theirs: Outputs, found: list[Difference]) -> tuple[str, str, str]:
        """Return the verdict on outputs that differ, its evidence, and the rerun that gave it."""
        words, exact = "; ".join(map(str, found[:2])), None
        with suppress(GpuError, UsageError, WgslError):  # a rerun that cannot be made shows nothing
            exact = compare_exactly(self, ours)
        if exact is not None and exact.differ:
            return "differs", f"{words}; {exact.words}", ""
        for row in EVIDENCE:
            with suppress(GpuError, UsageError, WgslError):
                if reason := row.look(self, ours, theirs):
                    more = f", and {exact.words}" if exact is not None and exact.agree and row.bounds else ""
                    return row.verdict, f"{reason}{more}; {words}", row.rerun
        return "differs", words, ""
