"""Choosing kernels: rules, grids within WebGPU's limits, and the table for our own kernels."""

from pathlib import Path

import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import kernel_selection, manifest_loader
from bankshot.oracle.manifests.cases import Request, plans

SHADERS = Path(__file__).parents[2] / "shaders"
RULES = kernel_selection.load(SHADERS / "selection.toml")
KERNELS = {plan.kernel.name: plan.kernel for plan in plans([SHADERS], Request())}

TABLE = """\
[[rule]]
kernel = "wide"
because = "many columns"
traits = { format = "f16" }
sizes = { M = 1, N = { above = 8192 } }

[[rule]]
kernel = "narrow"
because = "few columns"
sizes = { M = 1, K = { multiple_of = 4, at_most = 64 } }

[[rule]]
kernel = "wide"
because = "anything else"
"""

FAMILY = """\
[kernel]
source = "k.wgsl"
dims = { M = 1, N = 1, K = 1 }

[[variant]]
kernel = { name = "wide", dispatch = ["ceil(N / 32)", "M"] }

[[variant]]
kernel = { name = "narrow", dispatch = ["ceil(N / 4)"] }
"""


@pytest.fixture
def world(tmp_path):
    """`world(M=…, N=…, K=…, format=…)`: what the rules above choose."""
    (tmp_path / "k.wgsl").write_text("")
    (tmp_path / "k.toml").write_text(FAMILY)
    (tmp_path / "selection.toml").write_text(TABLE)
    rules, kernels = kernel_selection.load(tmp_path / "selection.toml"), manifest_loader.load_all(tmp_path / "k.toml")

    def choose(m, n, k, **traits):
        return kernel_selection.choose(rules, kernels, {"M": m, "N": n, "K": k}, traits)

    return choose


@pytest.mark.parametrize(
    ("sizes", "traits", "kernel", "grid", "because"),
    [
        ((1, 8193, 6), {"format": "f16"}, "wide", (257, 1, 1), "many columns"),
        ((1, 8193, 6), {"format": "f32"}, "wide", (257, 1, 1), "anything else"),
        ((1, 8193, 6), {}, "wide", (257, 1, 1), "anything else"),
        ((1, 8192, 64), {"format": "f16"}, "narrow", (2048, 1, 1), "few columns"),
        ((1, 8192, 68), {"format": "f16"}, "wide", (256, 1, 1), "anything else"),
        ((2, 64, 4), {}, "wide", (2, 2, 1), "anything else"),
    ],
)
def test_the_first_rule_that_fits(world, sizes, traits, kernel, grid, because):
    choice = world(*sizes, **traits)
    assert (choice.kernel.name, choice.grid, choice.because) == (kernel, grid, because)
    assert choice.passed_over == ()


def test_a_grid_beyond_the_limit_is_passed_over(world):
    """65,535 workgroups are the most in a dimension: 4 columns a workgroup do for 262,140 columns."""
    assert world(1, 262_140, 4).kernel.name == "narrow"
    choice = world(1, 262_141, 4)
    assert (choice.kernel.name, choice.grid) == ("wide", (8192, 1, 1))
    ((rule, exceeded),) = choice.passed_over
    assert (rule.kernel, exceeded.limit) == ("narrow", "maxComputeWorkgroupsPerDimension")
    with pytest.raises(UsageError, match=r"wide would need workgroups along x: 65,536 is over"):
        world(65_536, 32 * 65_535 + 1, 4)  # along y, it is over as well
    with pytest.raises(UsageError, match=r"for M = 65536, .* wide would need workgroups along y: 65,536 is over"):
        world(65_536, 1, 4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("above = 8192", "abov = 8192", "unknown key `abov`; did you mean `above`?"),
        ('because = "few columns"', "", "selection.toml:1: [[rule]] lacks `because`"),
        ("sizes = { M = 1, N", "size = { M = 1, N", "unknown key `size`; did you mean `sizes`?"),
        ("M = 1, N", 'M = "1", N', "`M` must be an integer or a table, not '1'"),
    ],
)
def test_a_mistake_in_the_rules_is_named(tmp_path, old, new, message):
    (tmp_path / "selection.toml").write_text(TABLE.replace(old, new))
    with pytest.raises(UsageError) as caught:
        kernel_selection.load(tmp_path / "selection.toml")
    assert message in str(caught.value)


def test_an_unknown_kernel_is_named(world, tmp_path):
    rules = kernel_selection.load(tmp_path / "selection.toml")
    with pytest.raises(UsageError, match="a rule chooses wide, which is in no manifest"):
        kernel_selection.choose(rules, [], {"M": 2, "N": 1, "K": 1}, {})


# ---- our own kernels ---------------------------------------------------------------------------------


def chosen(dims, **traits):
    sizes = dict(zip("MNK", dims, strict=True))
    return kernel_selection.choose(RULES, KERNELS.values(), sizes, {"layout": "NxK", **traits})


@pytest.mark.parametrize(
    ("dims", "traits", "kernel"),
    [
        ((1, 8192, 1152), {"weights": "f16", "subgroups": True}, "gemv_subgroup"),
        ((1, 8193, 1152), {"weights": "f16", "subgroups": True}, "gemv_subgroup_multicol"),
        ((1, 262_144, 1152), {"weights": "f16", "subgroups": True}, "gemv_subgroup_multicol"),
        ((1, 262_140, 1152), {"weights": "f16"}, "matmul_vec_fp16_single"),
        ((1, 262_144, 1152), {"weights": "f16"}, "matmul_t_w16"),  # four columns to a workgroup would be one too many
        ((2, 262_144, 1152), {"weights": "f16", "subgroups": True}, "matmul_t_w16"),
        ((1, 6912, 1152), {"weights": "q4_k"}, "q4_fused_multicol"),  # 5 of 256 invocations would work
        ((1, 6912, 256 * 127), {"weights": "q4_k"}, "q4_fused_multicol"),
        ((1, 6912, 256 * 127 + 4), {"weights": "q4_k"}, "q4_fused"),  # 128 of 256
        ((2, 6912, 1152), {"weights": "q4_k"}, "q4_fused_batched"),
        ((1, 2048, 2048), {"weights": "nf4"}, "matmul_vec_nf4"),
        ((64, 2048, 2048), {"weights": "nf4"}, "matmul_mat_nf4"),
        ((512, 768, 3072), {"weights": "f32", "layout": "KxN"}, "matmul"),
        ((512, 768, 770), {"weights": "f32", "layout": "KxN"}, "ladder_row_from_y"),
        ((512, 770, 768), {"weights": "f32"}, "matmul_t"),
    ],
)
def test_choices_of_our_rules(dims, traits, kernel):
    assert chosen(dims, **traits).kernel.name == kernel


def test_the_grid_of_a_head_for_262144_words():
    """4 columns to a workgroup would take 65,536 of them, one too many for a dimension; 32 take 8,192."""
    assert chosen((1, 262_144, 1152), weights="f16", subgroups=True).grid == (8192, 1, 1)
    four = kernel_selection.grid_of(KERNELS["gemv_subgroup"], {"N": 262_144, "K": 1152})
    assert four == (32_768, 2, 1)
    assert not kernel_selection.too_many_workgroups(four)
    assert kernel_selection.too_many_workgroups((65_536, 1, 1))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kernel)
def test_every_rule_chooses_a_kernel_that_takes_the_sizes(rule):
    """A rule must fix the sizes that its kernel does not take."""
    for dim, ((condition, _), *_) in rule.sizes.items():
        assert dim in KERNELS[rule.kernel].dims or condition == "is"


@pytest.mark.parametrize(
    ("kernel", "largest"),
    [
        ("ladder_one_thread", 255),  # a workgroup an output
        ("ladder_flat", 4095),  # a workgroup for 256 outputs
        ("ladder_row_from_y", 8 * 65_535),
        ("matmul", 64 * 65_535),
    ],
)
def test_the_largest_square_that_can_be_dispatched(kernel, largest):
    def exceeded(size):
        return kernel_selection.too_many_workgroups(
            kernel_selection.grid_of(KERNELS[kernel], {"M": size, "N": size, "K": size})
        )

    assert not exceeded(largest)
    assert exceeded(largest + 1)


def test_only_a_shader_stands_for_the_manifest_beside_it(tmp_path):
    text = '[kernel]\nsource = "k.wgsl"\ndispatch = [1]\n'
    (tmp_path / "k.toml").write_text(text)
    for name in ("k.wgsl", "k.txt"):
        (tmp_path / name).write_text("@compute @workgroup_size(1) fn main() {}")
    (plan,) = plans([tmp_path / "k.wgsl"], Request())
    assert plan.kernel.path == tmp_path / "k.toml"
    (plan,) = plans([tmp_path / "k.txt"], Request())
    assert plan.kernel.path == tmp_path / "k.txt"
