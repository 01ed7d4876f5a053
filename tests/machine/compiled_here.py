"""Compile functions as those of the machine, callable from Python."""

from __future__ import annotations

from typing import Any

from numba import njit

from bankshot.sim.machine.compile import units


def compiled_here(function: Any) -> Any:
    """By the path of this process."""
    return njit(**_options())(function)


def _options() -> dict[str, Any]:
    if not is_fast():
        return {}
    from bankshot.sim.machine.compile.numba_passes import Pipeline

    class Loaded(Pipeline):
        """The fast path's passes, into Numba's own library."""

        def define_pipelines(self) -> Any:
            passes = super().define_pipelines()
            self.state.library = None
            return passes

    return {"pipeline_class": Loaded, "no_rewrites": True}


def is_fast() -> bool:
    return units.path.__name__.endswith(".fast")


def as_python(function: Any) -> Any:
    """A function of the machine as plain Python, with all that it calls: for a `Part`, its Python function."""
    function = getattr(function, "function", None) or getattr(function, "py_func", function)
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        called = names.get(name)
        if hasattr(called, "function") or hasattr(called, "py_func"):
            names[name] = as_python(called)
    return type(function)(function.__code__, names, function.__name__, function.__defaults__)
