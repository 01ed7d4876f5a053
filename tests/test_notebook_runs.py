"""The cases that notebooks and figures run."""

from bankshot.oracle import notebook_runs


def test_a_case_has_the_sizes_and_overrides_that_it_is_given():
    case = notebook_runs.case("matmul.toml", "matmul", M=64, overrides={"TK_PAD": 16})
    assert (case.overrides["TK_PAD"], case.shape.dims["M"]) == (16, 64)
    usual = notebook_runs.case("matmul.toml", "matmul")
    assert {**usual.overrides, "TK_PAD": 16} == case.overrides != usual.overrides
