"""The checker agrees with the conformance suite on what is valid WGSL (see `cts_validation` for the whole run).

Of the 12,739 records we agree on all but the three below. That is 8,131 of 8,132 that are compute only, and 4,605 of
4,607 that hold other stages or textures.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator

import cts_validation as cts
import pytest

SAMPLE = 8  # of every test path the normal run takes one record in so many, and one at least

# Records on which we differ from the suite, and why. Each must still differ: an exception that is no more goes away.
EXCEPTIONS = {
    'webgpu:shader,validation,decl,assignment_statement:vector_swizzle_assignment:case="multi"#0': (
        "older than swizzle_assignment, under which other records want the same statement accepted"
    ),
    "webgpu:shader,validation,extension,clip_distances:use_clip_distances_requires_extension_enabled:"
    "requireExtension=false;enableExtension=true#0": "about a device without the feature, not about the text",
    'webgpu:shader,validation,shader_io,builtins:reuse_builtin_name:name="num_subgroups";stage="compute";io="in";'
    'type="u32";enable="subgroups";requires="subgroup_id";use="function-var"#0@nolang': (
        "about an implementation without subgroups: the text itself uses nothing of the feature"
    ),
}

needs_data = pytest.mark.skipif(
    not cts.RECORDS.exists(),
    reason=f"NO CONFORMANCE DATA: {cts.RECORDS} is missing; set BANKSHOT_CONFORMANCE to the folder that holds it",
)


def sample() -> Iterator[cts.Record]:
    """One record in `SAMPLE` of every test path, always the same ones: those whose hash of the id is least."""
    by_test: dict[str, list[cts.Record]] = {}
    for record in cts.records():
        by_test.setdefault(record["test"], []).append(record)
    for records in by_test.values():
        records.sort(key=lambda record: zlib.crc32(record["id"].encode()))
        yield from records[: -(-len(records) // SAMPLE)]


@needs_data
def test_a_sample_of_every_test_path_agrees() -> None:
    chosen = [record for record in sample() if record["id"] not in EXCEPTIONS]
    wrong = [f"{record['id']}: {said}" for record, said in cts.disagreements(chosen)]
    assert len(chosen) > 1500
    assert not wrong, "\n".join(wrong)
    assert min(Counter(record["expect"] for record in chosen).values()) > 500  # of both kinds there are many


@needs_data
def test_the_exceptions_are_exceptions_still() -> None:
    excepted = [record for record in cts.records() if record["id"] in EXCEPTIONS]
    assert {record["id"] for record, _ in cts.disagreements(excepted)} == set(EXCEPTIONS)
