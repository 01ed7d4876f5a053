"""The public names: `bankshot` and `bankshot.sim` each list them, as type checkers read only literal lists."""

import bankshot
from bankshot import sim


def test_both_lists_agree():
    here = {"UsageError", "__version__", "compute_with_buffers", "explore", "run_manifest"}
    assert {*bankshot.__all__} == {*sim.__all__, *here}


def test_every_public_name_is_found():
    assert all(getattr(bankshot, name) is not None for name in bankshot.__all__)
