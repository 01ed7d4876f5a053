"""Manifests of several kernels: what a variant overrides, and which kernel a name chooses."""

import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import manifest_loader
from tests.manifests.test_manifest import GOOD

FAMILY = (
    GOOD
    + """
[[variant]]
kernel.name = "plain"

[[variant]]
kernel.name = "k"
kernel.entry = "other"
kernel.overrides = { TK = 4 }
bind.A.dtype = "f16"
bind.B = { dtype = "f32", shape = ["M"], init = "ones" }
sweep = [{ M = 5, N = 7 }]
expect = { barriers = 3, allow = [] }
"""
)


def test_a_kernel_alone_may_have_any_name(write):
    path = write(GOOD.replace('entry = "main"', 'name = "other"'))
    assert manifest_loader.load(path).name == "other"
    with pytest.raises(UsageError, match=r"no kernel is named k; there are other"):
        manifest_loader.load(path, "k")


def test_a_variant_overrides_the_file(write):
    plain, other = manifest_loader.load_all(write(FAMILY))
    assert (plain.name, plain.entry, len(plain.shapes), plain.counters) == ("plain", "main", 5, {"barriers": "2 * M"})
    assert (other.name, other.entry, other.overrides) == ("k", "other", {"WG": 8, "TK": 4})
    assert [(b.name, b.var, b.dtype) for b in other.bindings] == [
        ("A", "src", "f16"),
        ("size", "size", "u32"),
        ("B", "B", "f32"),
    ]
    assert [(b.name, b.dtype) for b in plain.bindings] == [("A", "f32"), ("size", "u32")]
    assert [str(s) for s in other.shapes] == ["M=5 N=7"]
    assert (other.counters, other.allow, str(other.rules["A"])) == ({"barriers": 3}, frozenset(), "ulp max 2")


def test_one_kernel_of_a_family(write):
    path = write(FAMILY)
    assert manifest_loader.load(path, "plain").name == "plain"
    assert manifest_loader.load(path).name == "k"  # as the file is called
    with pytest.raises(UsageError, match=r"no kernel is named plane; there are plain, k"):
        manifest_loader.load(path, "plane")
    with pytest.raises(UsageError, match=r"no kernel is named k; there are plain, q"):
        manifest_loader.load(write(FAMILY.replace('kernel.name = "k"', 'kernel.name = "q"')))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kernel.name = "k"', 'kernel.name = "plain"', "two variants are named plain; give each its own `kernel.name`"),
        ('entry = "other"', "entry = 3", "`entry` must be a string, not 3 (in variant k)"),
        ("bind.A.dtype", "bind.A.dtpe", "[bind.A] has an unknown key `dtpe`; did you mean `dtype`? (in variant k)"),
        ("bind.B", "bnd.B", "the file has an unknown key `bnd`; did you mean `bind`? (in variant k)"),
    ],
)
def test_a_mistake_in_a_variant_is_named(write, old, new, message):
    assert FAMILY.count(old) == 1
    with pytest.raises(UsageError) as caught:
        manifest_loader.load_all(write(FAMILY.replace(old, new)))
    assert message in str(caught.value)
