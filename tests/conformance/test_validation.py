"""The checker agrees with the conformance suite on what is valid WGSL (see `cts_validation` for the whole run).

Of the 12,739 records we agree on all but the three below. That is 8,131 of 8,132 that are compute only, and 4,605 of
4,607 that hold other stages or textures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import cts_validation as cts
from sampling import sample

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

Read = Callable[[str], Iterator[cts.Record]]


def test_a_sample_of_every_test_path_agrees(conformance: Read) -> None:
    chosen = [record for record in sample(conformance("valid"), SAMPLE) if record["id"] not in EXCEPTIONS]
    wrong = [f"{record['id']}: {said}" for record, said in cts.disagreements(chosen)]
    assert len(chosen) > 1500
    assert not wrong, "\n".join(wrong)
    assert min(Counter(record["expect"] for record in chosen).values()) > 500  # of both kinds there are many


def test_the_exceptions_are_exceptions_still(conformance: Read) -> None:
    excepted = [record for record in conformance("valid") if record["id"] in EXCEPTIONS]
    assert {record["id"] for record, _ in cts.disagreements(excepted)} == set(EXCEPTIONS)
