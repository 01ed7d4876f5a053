"""Manifests under which a wrong kernel is judged: with sane rules, and with each way to compare nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bankshot.sim.findings.table import KINDS

from .kernels import Kernel
from .wrongness import Output, beyond

RIGHT_MANIFEST = "good/right.toml"  # of a right kernel, in the folder that is audited
_ABSURD = {
    "close": ("{ rule = \"close\", rtol = %s, atol = %s }", ("1.0", "1e3", "1e30", "1e300", "inf")),
    "ulp": ("{ rule = \"ulp\", max = %s }", ("4294967295", "1e12", "1e300", "inf")),
    "nmse": ("{ rule = \"nmse\", max = %s }", ("4.0", "1e9", "1e300", "inf")),
}  # fmt: skip
_COUNTERS = ("barriers", "flops", "bank_conflicts")


@dataclass
class Draft:
    """What is judged: a manifest, and the files beside it. `reference`: the text of its file, if it has one. `golden`:
    whether the right kernel is accepted first. `fatal`: the reference may end the process that runs it."""

    kernel: Kernel
    outputs: Mapping[str, Output]
    about: list[str] = field(default_factory=list[str])
    head: list[str] = field(default_factory=list[str])
    expect: list[str] = field(default_factory=list[str])
    reference: str | None = None
    golden: bool = False
    fatal: bool = False
    disguise: Callable[[bytes], bytes] | None = None
    name: str = "k.toml"
    options: list[str] = field(default_factory=list[str])
    sweep: str = ""

    @property
    def wrong(self) -> list[str]:
        """The outputs that are grossly wrong."""
        return [name for name, output in self.outputs.items() if output.is_gross]

    def manifest(self) -> bytes:
        """The text of the manifest."""
        lines = list(self.head)
        if self.reference is not None:
            lines.append(f'reference = "reference.py:{self.kernel.reference.__name__}"')
        table = self.kernel.table().replace("\n", "\n" + "".join(f"{line}\n" for line in lines), 1)
        text = f"{table}\n{self.sweep}\n[expect]\n" + "".join(f"{line}\n" for line in self.expect)
        return self.disguise(text.encode()) if self.disguise else text.encode()


def draft(kernel: Kernel, outputs: Mapping[str, Output], random_: random.Random, way_: str = "") -> Draft | None:
    """Draw a way to judge these outputs, or take the one that is named. Returns None where it may rightly accept
    them."""
    made = Draft(kernel, outputs)
    name = random_.choices(list(WAYS), [weight for _, weight in WAYS.values()])[0]
    name = way_ or name
    way, _ = WAYS[name]
    made.about.append(name)
    if random_.random() < 0.9:
        codes = random_.sample(sorted(KINDS), random_.randrange(len(KINDS) + 1)) if random_.random() < 0.3 else KINDS
        made.expect.append(f"allow = [{', '.join(repr(code) for code in codes)}]")
    if kernel.shapes and random_.random() < 0.3:
        made.sweep = f"[[sweep]]\nN = {[*random_.sample(kernel.shapes, 1), kernel.size]}\n"
    return made if way(made, random_) else None


def _right_reference(made: Draft) -> None:
    made.reference = made.kernel.reference_text()


def _rules(made: Draft, random_: random.Random, skip: tuple[str, ...] = ()) -> bool:
    """A sane rule for each output; at least one output that is wrong beyond its rule."""
    caught = False
    for name, output in made.outputs.items():
        if name in skip:
            continue
        rule, limits = _sane(made.kernel, output, random_)
        caught |= beyond(rule, limits, output)
        if rule:
            row = ", ".join([f'rule = "{rule}"', *(f"{key} = {value}" for key, value in limits.items())])
            made.expect.append(f"{name} = {{ {row} }}")
    return caught


def _sane(kernel: Kernel, output: Output, random_: random.Random) -> tuple[str, dict[str, float]]:
    ways = [
        ("", {}),
        ("close", {}),
        ("close", {"rtol": 0.001, "atol": 0.001}),
        ("close", {"rtol": 0.3, "atol": 0.01}),
        ("ulp", {"max": 64}),
        ("nmse", {}),
        ("nmse", {"max": 0.01}),
    ]
    ways.append(("derived", {}) if output.actual.dtype.kind == "f" else ("exact", {}))
    return random_.choice(ways)


def _sane_rules(made: Draft, random_: random.Random) -> bool:
    _right_reference(made)
    return _rules(made, random_)


def _absurd_rules(made: Draft, random_: random.Random) -> bool:
    """Limits that accept whatever is in an output that is wrong, and sane ones for the others."""
    _right_reference(made)
    for name in made.wrong:
        form, limits = random_.choice(list(_ABSURD.values()))
        limit = random_.choice(limits)
        made.expect.append(f"{name} = {form.replace('%s', limit)}")
    _rules(made, random_, skip=tuple(made.wrong))
    return bool(made.wrong)


def _no_reference(made: Draft, random_: random.Random) -> bool:
    """Nothing to compare with but an adapter, which is switched off; perhaps counters that are right."""
    if random_.random() < 0.3:
        made.expect.append(f'gpu = {{ {random_.choice(made.wrong or ["y"])} = "close" }}')
    if random_.random() < 0.3:
        made.expect += [f'{name} = "{random_.choice(["0", "0 * 1"])}"' for name in random_.sample(_COUNTERS, 1)]
    return bool(made.wrong)


def _other_reference(made: Draft, random_: random.Random) -> bool:
    """A reference that says nothing about what is wrong, or that is not right itself."""
    name, body, made.fatal = random_.choice(_REFERENCES)
    made.about.append(name)
    function = made.kernel.reference.__name__
    imports = "import os, sys\nfrom bankshot.oracle.references import Expected\n"
    text = made.kernel.reference_text().replace(f"def {function}(", "def right(")
    body = body.replace("WRONG", repr(made.wrong))
    made.reference = f"{imports}{text}\n\ndef {function}(arrays, dims):\n    made = right(arrays, dims)\n{body}"
    if name.startswith("bound"):
        made.expect += [f'{each} = "bound"' for each in made.outputs]
    return bool(made.wrong)


_CHANGED = "    return {name: %s if name in WRONG else value for name, value in made.items()}\n"
_REFERENCES = (
    (
        "omits the output",
        "    return {name: value for name, value in made.items() if name not in WRONG} or {}\n",
        False,
    ),
    ("omits it, has another", "    return {**{n: v for n, v in made.items() if n not in WRONG}, 'other': 0}\n", False),
    ("empty arrays", _CHANGED % "np.zeros(0)", False),
    ("first element", _CHANGED % "value.reshape(-1)[:1]", False),
    ("NaN", _CHANGED % "value * np.nan", False),
    ("NaN but for the first", _CHANGED % "np.where(np.arange(value.size).reshape(value.shape), np.nan, value)", False),
    ("infinite", _CHANGED % "value * 0 + np.inf", False),
    ("bound infinite", _CHANGED % "Expected(value, np.full(value.shape, np.inf))", False),
    ("bound NaN", _CHANGED % "Expected(value, np.full(value.shape, np.nan))", False),
    ("bound negative", _CHANGED % "Expected(value, np.full(value.shape, -1.0))", False),
    ("bound 1e300", _CHANGED % "Expected(value, np.full(value.shape, 1e300))", False),
    ("bound of none", _CHANGED % "Expected(value, None)", False),
    ("None", "    return None\n", False),
    ("strings", _CHANGED % "'right'", False),
    ("raises", "    raise ValueError('no')\n", False),
    ("sys.exit(0)", "    sys.exit(0)\n", False),
    ("SystemExit", "    raise SystemExit\n", False),
    ("KeyboardInterrupt", "    raise KeyboardInterrupt\n", True),
    ("os._exit(0)", "    os._exit(0)\n", True),
    ("closes stdout", "    os.close(1)\n    return made\n", True),
    ("prints", "    print('clean')\n    return made\n", False),
    ("changes its input", "    for array in arrays.values():\n        array[...] = 0\n    return made\n", False),
    ("returns its input", "    return {name: arrays[name] for name in made}\n", False),
)


def _golden(made: Draft, random_: random.Random) -> bool:
    """The golden of the right kernel."""
    made.golden = True
    made.expect.append(f"golden = {random_.choice(['true', chr(34) + 'outputs' + chr(34)])}")
    if random_.random() < 0.3:
        made.options += ["--device", random_.choice(["amd-rdna", "apple", "intel-xe", "lavapipe"])]
    if random_.random() < 0.3:
        made.expect.append(f"free = {made.wrong!r}")
    if random_.random() < 0.3:
        _right_reference(made)
    return bool(made.wrong)


def _free(made: Draft, random_: random.Random) -> bool:
    made.expect.append(f"free = {list(made.outputs)!r}")
    if random_.random() < 0.7:
        _right_reference(made)
        return _rules(made, random_)
    return bool(made.wrong)


def _stopped(made: Draft, random_: random.Random) -> bool:
    """A budget that ends the run."""
    made.head.append(f"budget = {random_.choice([1, 2, 8])}")
    _right_reference(made)
    return _rules(made, random_)


def _disguised(made: Draft, random_: random.Random) -> bool:
    """A manifest that a search of folders may leave out, beside one that is clean."""
    name, made.disguise = random_.choice(_DISGUISES)
    made.about.append(name)
    _right_reference(made)
    return _rules(made, random_)


_DISGUISES: tuple[tuple[str, Callable[[bytes], bytes] | None], ...] = (
    ("BOM", lambda text: b"\xef\xbb\xbf" + text),
    ("UTF-16", lambda text: text.decode().encode("utf-16")),
    ("NUL", lambda text: b"\0" + text),
    ("array of tables", lambda text: text.replace(b"[kernel]", b"[[kernel]]", 1)),
    ("capital", lambda text: text.replace(b"[kernel]", b"[Kernel]", 1)),
    ("misspelled", lambda text: text.replace(b"[kernel]", b"[kernal]", 1)),
    ("blanks", lambda text: text.replace(b"[kernel]", b"[ kernel ]", 1)),
    ("quoted", lambda text: text.replace(b"[kernel]", b'["kernel"]', 1)),
    ("carriage returns", lambda text: text.replace(b"\n", b"\r")),
    ("cut off", lambda text: text[: len(text) // 2]),
    ("not closed", lambda text: text + b'x = "'),
    ("comment first", lambda text: b"# about\n\n" + text),
    ("Latin-1", lambda text: b"# caf\xe9\n" + text),
    ("as it is", None),
)

WAYS: dict[str, tuple[Callable[[Draft, random.Random], bool], float]] = {
    "sane rules": (_sane_rules, 4.0),
    "absurd rules": (_absurd_rules, 2.0),
    "no reference": (_no_reference, 0.7),
    "other reference": (_other_reference, 2.0),
    "golden": (_golden, 1.0),
    "free": (_free, 0.7),
    "stopped": (_stopped, 0.4),
    "disguised": (_disguised, 0.8),
}
