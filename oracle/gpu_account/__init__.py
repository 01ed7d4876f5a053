"""The charges for what a GPU recorded, written a second time: nothing here is shared with the simulator's counters.

The definitions are those of `docs/counters.md`. Of `sim` these files import the typed module alone, which names places
in the source; `tests/gpu_account/test_independence.py` enforces it.
"""
