"""Reasons why outputs differ from wgpu's: what each covers, and that none hides a fault of the simulator."""

from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle.corpus.embedded import Shader
from bankshot.oracle.corpus.trial import trials
from bankshot.oracle.diagnosis.absent_lanes import with_other_lanes
from bankshot.oracle.diagnosis.adapter_reruns import zeroing
from bankshot.oracle.diagnosis.exact_arithmetic import with_exact_arithmetic
from bankshot.oracle.diagnosis.kept_floats import DATA
from bankshot.sim.ir.builder import Builder

Y = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;"
X = "@group(0) @binding(1) var<storage> x: array<f32>;"
ID = "@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32"


def verdict(text):
    (made,) = trials(Shader(Path("a.wgsl"), 1, text), None)
    return made


def simulated(text, size=8, device="lavapipe", **bindings):
    module = bankshot.check(text, uniformity="off")
    given = {"y": np.zeros(size, np.float32), **DATA, **bindings}
    names = {v.name for v in module.globals if v.binding is not None}
    used = {name: data for name, data in given.items() if name in names}
    return bankshot.simulate(module, grid=1, bindings=used, probes="none", device=device).outputs["y"]


# ---- faults ------------------------------------------------------------------------------------------------

LOOSE = f"""{Y} {X} @compute @workgroup_size(64) fn main({ID}) {{
    var sum = 0.0;
    for (var k = 0u; k < 16u; k++) {{ sum = sum + exp(x[id.x * 16u + k]) * 0.3; }}
    y[id.x] = sum / (1.5 + x[id.x] - 0.25);
}}"""
UNBOUNDED = f"""{Y} {X} @compute @workgroup_size(64) fn main({ID}) {{
    y[id.x] = tan(f32(id.x * 1234567u)) + (x[id.x] - 0.3) * 0.7;
}}"""
RACY = f"""{Y} {X} @compute @workgroup_size(64) fn main({ID}) {{
    y[0] = f32(id.x);
    y[id.x + 1u] = (x[id.x] - 0.3) * 0.7;
}}"""
NOT_ZEROED = f"""{Y} {X} var<workgroup> w: array<f32, 64>;
@compute @workgroup_size(64) fn main({ID}) {{ y[id.x] = w[i] + (x[id.x] - 0.3) * 0.7; }}"""

EXPECTED = {LOOSE: "within", UNBOUNDED: "unchecked", RACY: "explained"}


def scaled(name, by):
    """Seed a fault: the results of a scalar operation are off by the factor 1 + `by`."""

    def seed(monkeypatch):
        right = Builder.op

        def op(self, op_name, /, *args):
            value = right(self, op_name, *args)
            return right(self, "mul_f32", value, self.const("f32", 1 + by)) if op_name == name else value

        monkeypatch.setattr(Builder, "op", op)

    return seed


def renamed(name, other):
    """Seed a fault: an operation does what another does."""

    def seed(monkeypatch):
        right = Builder.op
        monkeypatch.setattr(Builder, "op", lambda self, op, /, *args: right(self, other if op == name else op, *args))

    return seed


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("text", EXPECTED, ids=EXPECTED.get)
def test_without_a_fault_differences_are_allowed(text):
    made = verdict(text)
    assert made.verdict == EXPECTED[text], made


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("text", [*EXPECTED, NOT_ZEROED], ids=[*EXPECTED.values(), "not-zeroed"])
@pytest.mark.parametrize(
    "seed",
    [scaled("sub_f32", 2.0**-20), scaled("mul_f32", 2.0**-21), renamed("sub_f32", "add_f32")],
    ids=["sub-off", "mul-off", "sub-adds"],
)
def test_no_reason_hides_a_fault(text, seed, monkeypatch):
    seed(monkeypatch)
    made = verdict(f"{text} // {id(seed)}")  # a text that no cache has
    assert made.verdict == "differs", made


# ---- reasons -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("adapter")
def test_a_reason_covers_the_elements_that_differ_and_no_others():
    """The order of invocations changes an element, and inactive lanes others: together they cover all, each alone does
    not."""
    made = verdict(f"""enable subgroups; {Y} @compute @workgroup_size(32) fn main({ID}) {{
        y[0] = f32(id.x);
        if id.x < 256u {{ y[id.x + 1u] = subgroupShuffleXor(f32(id.x * 7u), 16u); }}
    }}""")
    assert made.verdict == "explained", made
    assert "lanes that are inactive or absent decide" in made.why


@pytest.mark.usefixtures("adapter")
def test_numbers_that_a_comparison_of_inexact_floats_selects():
    made = verdict(f"""{Y.replace("f32", "u32")} {X} @compute @workgroup_size(64) fn main({ID}) {{
        var best = 0u;
        for (var k = 1u; k < 64u; k++) {{
            if exp(x[k]) * exp(0.5 - x[k]) > exp(x[best]) * exp(0.5 - x[best]) {{ best = k; }}
        }}
        y[id.x] = best;
    }}""")
    assert made.verdict in ("equal", "explained", "unchecked"), made
    assert made.verdict == "equal" or "with exact arithmetic in place of exp, all outputs agree bit for bit" in made.why


@pytest.mark.usefixtures("adapter")
def test_overrides_that_must_fit_together_stay_in_bounds():
    made = verdict(f"""{Y} override rows: u32; override columns: u32; override all: u32;
        var<workgroup> w: array<f32, all>;
        @compute @workgroup_size(rows, columns) fn main({ID}) {{
            w[i] = f32(i);
            workgroupBarrier();
            y[id.x] = w[all - 1u - i];
        }}""")
    assert made.verdict == "equal", made


# ---- texts -------------------------------------------------------------------------------------------------


def test_arrays_sized_by_overrides_are_zeroed_element_by_element():
    text = f"""override n = 4u; struct S {{ a: f32, b: vec2f }}
        var<workgroup> w: array<f32, 2 * n>; var<workgroup> o: array<S, n>; var<workgroup> c: array<atomic<u32>, n>;
        {Y} @compute @workgroup_size(4) fn main({ID}) {{
            y[i] = 1 + w[i] + o[i].b.y + f32(atomicLoad(&c[i]));
        }}"""
    module = bankshot.check(text)
    zeroed = zeroing(text, module.pipeline("main", {}))
    assert zeroed is not None
    bankshot.check(zeroed)  # such arrays cannot be assigned
    assert simulated(zeroed).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_lanes_that_are_not_active_give_another_value():
    text = f"""enable subgroups; {Y} @compute @workgroup_size(4) fn main({ID}) {{
        if i < 3u {{ y[i] = subgroupShuffleUp(f32(i) + 10, 1u); y[i + 4u] = subgroupShuffleDown(f32(i) + 10, 1u); }}
    }}"""
    other = with_other_lanes(bankshot.check(text, uniformity="off").pipeline("main", {}))
    assert other is not None
    assert simulated(other).tolist() == [1234, 10, 11, 0, 11, 12, 1234, 0]
    none = bankshot.check(f"{Y} @compute @workgroup_size(4) fn main({ID}) {{ y[i] = 1; }}")
    assert with_other_lanes(none.pipeline("main", {})) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("exp(a)", 0.75 * 6),
        ("a / b", 0.75 * 6 - 0.25 * 2),
        ("exp(a) / (b) - 1", 0.75 * (0.75 * 6) - 0.25 * 2 - 1),
        ("a % b", 0.75 * 6 - 0.25 * 2),
        ("atan2(a, b)", 0.75 * 6 - 0.25 * 2),
        ("mix(a, b, 4.0)", 0.75 * 6 - 0.25 * 2 - 0.125 * 4),
        ("length(vec2(b, a))", 0.75 * 2),
        ("(vec2(a, b) / b).y", 0.75 * 2 - 0.25 * 2),
        ("ldexp(sqrt(a), 1)", 2 * 0.75 * 6),
        ("f32(sin(f16(a)))", 0.75 * 6),
        ("a * b + dot(vec2(a, b), vec2(b, a))", 36),
        ("a - f32(7u / u32(b))", 3),
    ],
)
def test_exact_arithmetic_replaces_inexact_functions(expression, expected):
    main = f"@compute @workgroup_size(1) fn main() {{ var a = 6.0; var b = 2.0; y[0] = {expression}; }}"
    made = with_exact_arithmetic(bankshot.check(f"enable f16; {Y} {main}").pipeline("main", {}))
    assert made is not None
    assert simulated(made[0])[0] == expected


@pytest.mark.parametrize(
    "body",
    ["var m = mat2x2f(); y[0] = (m * vec2f(1)).x;", "var a = 1.0; a /= 3; y[0] = a;", "var k = 1u; y[0] = 0; k += 1;"],
)
def test_texts_without_exact_arithmetic(body):
    module = bankshot.check(f"{Y} @compute @workgroup_size(1) fn main() {{ {body} }}")
    assert with_exact_arithmetic(module.pipeline("main", {})) is None


@pytest.mark.usefixtures("adapter")
def test_memory_that_another_kernel_filled_shows_that_it_is_not_zeroed():
    made = verdict(f"""{Y} var<workgroup> w: array<f32, 64>;
        @compute @workgroup_size(64) fn main({ID}) {{ y[id.x] = w[i]; }}""")
    assert made.verdict in ("equal", "explained"), made
    assert made.verdict == "equal" or made.rerun == "wgpu, with a text that zeroes workgroup memory"
