"""What a changed output is compared with: the elements that its golden keeps, or their digest alone."""

from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.judge import golden_check

NOW = np.array([1, 2, 4], np.float32)
KEPT = np.array([1, 2, 3], np.float32)


def mismatches(kept, digest="another"):
    case = SimpleNamespace(kernel=SimpleNamespace(bindings=[SimpleNamespace(var="y", name="out")]))
    old = SimpleNamespace(outputs={"y": digest}, arrays={} if kept is None else {"y": kept})
    return [*golden_check._mismatches(case, SimpleNamespace(outputs={"y": NOW}), None, old)]


def test_elements_that_a_golden_keeps_are_those_expected():
    (found,) = mismatches(KEPT)
    assert (found.output, found.golden, found.same) == ("out", True, None)
    assert found.expected is KEPT


@pytest.mark.parametrize("kept", [None, KEPT[:2], KEPT.astype(np.float64)], ids=["none", "shape", "type"])
def test_without_such_elements_only_the_digest_is_compared(kept):
    (found,) = mismatches(kept)
    assert (found.golden, found.expected is NOW) == (True, True)
    assert found.same is not None


def test_an_output_with_the_digest_of_its_golden_is_no_mismatch():
    assert mismatches(KEPT, golden_check.goldens.digest(NOW)) == []
