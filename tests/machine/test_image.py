"""Linking object files into an image: what LLVM compiles, taken into memory without it."""

import math
import sys
from ctypes import CFUNCTYPE, c_double, c_long

import pytest
from bankshot.sim.machine.compile import image
from llvmlite import binding as llvm

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or "x86_64" not in llvm.get_process_triple(), reason="images are for Linux on x86-64"
)

# Called by another unit by the name of its symbol; it has a constant, and calls C.
FIRST = """
declare double @cosh(double)
define double @first(double %x) {
  %c = call double @cosh(double %x)
  %y = fadd double %c, 0x400921FB54442D18
  ret double %y
}
"""
SECOND = """
declare double @unit(double)
define double @second(double %x) {
  %y = call double @unit(double %x)
  %z = fmul double %y, 0x4005BF0A8B145769
  ret double %z
}
"""
# A table of addresses within the code, and a second function.
SWITCH = """
define i64 @switch(i64 %x) {
  switch i64 %x, label %other [ i64 0, label %a  i64 1, label %b  i64 2, label %c  i64 3, label %d  i64 4, label %e ]
a: %a1 = call i64 @twice(i64 70)
   ret i64 %a1
b: ret i64 2
c: %c1 = call i64 @twice(i64 %x)
   ret i64 %c1
d: ret i64 -9
e: ret i64 30
other: ret i64 0
}
define i64 @twice(i64 %x) noinline {
  %y = mul i64 %x, 2
  ret i64 %y
}
"""
WRITTEN = """
@kept = global i64 1
define i64 @count() {
  %x = load i64, i64* @kept
  ret i64 %x
}
"""
MISSING = FIRST.replace("cosh", "a_function_that_nobody_has")


def compiled(source, code_model="jitdefault", **options):
    """Object code, as Numba has it compiled."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True, codemodel=code_model, **options)
    return machine.emit_object(llvm.parse_assembly(source))


def test_units_call_each_other_and_c():
    content = image.link([("unit", "first", compiled(FIRST)), ("last", "second", compiled(SECOND))], ["facts"])
    for _ in range(2):  # each time elsewhere
        address, facts, _kept = image.load(content)
        assert facts == ["facts"]
        assert CFUNCTYPE(c_double, c_double)(address)(1.5) == (math.cosh(1.5) + math.pi) * math.e


def test_a_table_leads_into_the_code():
    address, _, _kept = image.load(image.link([("unit", "switch", compiled(SWITCH))], None))
    assert [CFUNCTYPE(c_long, c_long)(address)(x) for x in range(-1, 6)] == [0, 140, 2, 4, -9, 30, 0]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (lambda: compiled(WRITTEN), "is written to"),
        (lambda: compiled(MISSING), "a_function_that_nobody_has is nowhere"),
        (lambda: compiled(FIRST, "small", reloc="pic"), "relocation of type"),
        (lambda: b"\xcf\xfa\xed\xfe" + bytes(200), "no object file of x86-64"),
        (lambda: compiled(FIRST)[:18] + b"\xb7\0" + compiled(FIRST)[20:], "no object file of x86-64"),
    ],
    ids=["written", "missing", "pic", "another format", "another processor"],
)
def test_what_it_does_not_know_is_left_to_llvm(code, why):
    function = "count" if why == "is written to" else "first"
    with pytest.raises(image.Unlinkable, match=why):
        image.link([("unit", function, code())], None)


def test_another_system_has_none(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(image.Unlinkable):
        image.link([("unit", "first", compiled(FIRST))], None)


def test_one_that_is_damaged_is_not_loaded():
    content = image.link([("unit", "first", compiled(FIRST))], None)
    for damaged in (b"", content[:5], content[:-1], content[:100] + bytes([content[100] ^ 1]) + content[101:]):
        with pytest.raises(image.Unlinkable, match="damaged"):
            image.load(damaged)


def test_a_function_that_is_gone_is_noticed_when_it_is_loaded():
    content = image.link([("unit", "first", compiled(FIRST))], None)
    _, _, body = content.replace(b"cosh", b"gone").partition(b"\n")
    with pytest.raises(image.Unlinkable, match="gone is nowhere"):
        image.load(b"%08x\n" % image.crc32(body) + body)
