"""The checker agrees with the conformance suite on what is valid WGSL (see `cts_validation`)."""

from __future__ import annotations

import zlib

import cts_validation as cts
import pytest

# Of 12,739 records we agree on this share (compute only; with other stages or textures).
COMPUTE_RATE = 0.0
OTHER_RATE = 0.0

SAMPLE = 25  # one record in so many, chosen by a stable hash of its id

needs_data = pytest.mark.skipif(
    not cts.RECORDS.exists(),
    reason=f"NO CONFORMANCE DATA: {cts.RECORDS} is missing; set BANKSHOT_CONFORMANCE to the folder that holds it",
)


@needs_data
@pytest.mark.parametrize(("compute_only", "rate"), [(True, COMPUTE_RATE), (False, OTHER_RATE)])
def test_a_sample_of_the_suite_agrees(compute_only: bool, rate: float) -> None:
    chosen = [
        record
        for record in cts.records()
        if record["compute_only"] is compute_only and zlib.crc32(record["id"].encode()) % SAMPLE == 0
    ]
    wrong = [f"{record['id']}: {said}" for record, said in cts.disagreements(chosen)]
    assert len(chosen) > 100
    assert 1 - len(wrong) / len(chosen) >= rate, "\n".join(wrong)


@needs_data
def test_nothing_crashes_the_checker() -> None:
    chosen = [record for record in cts.records() if zlib.crc32(record["id"].encode()) % SAMPLE == 1]
    assert [said for _, said in cts.disagreements(chosen) if said.startswith("crash")] == []
