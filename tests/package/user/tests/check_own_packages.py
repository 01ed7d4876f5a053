"""Tests of a repository that has packages `sim` and `oracle` of its own, and uses Bankshot."""

import numpy as np

import bankshot
import oracle
import sim

TEXT = "@group(0) @binding(0) var<storage, read_write> y: u32; @compute @workgroup_size(1) fn main() { y = 7u; }"


def test_its_own_packages_are_found():
    assert (sim.VALUE, oracle.VALUE) == (1, 2)


def test_bankshot_works_beside_them():
    run = bankshot.simulate(TEXT, grid=1, bindings={"y": np.zeros(1, np.uint32)})
    assert run.outputs["y"].tolist() == [7]


def test_the_fixture_comes_with_the_wheel(request):
    assert type(request.getfixturevalue("bankshot")) is __import__("bankshot.testing").testing.Bankshot
