"""The declarations of a C header are parsed once per installation."""

import subprocess
import sys
from pathlib import Path

import cffi
import pytest

from bankshot.oracle.wgpu_worker import wgpu_declarations

ROOT = Path(__file__).parents[2]
HEADER = """
typedef struct { int quot; int rem; } div_t;
enum Kind { Kind_First = 3, Kind_Second };
div_t div(int, int);
int abs(int);
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BANKSHOT_CACHE", str(tmp_path))
    return tmp_path / "bankshot"


@pytest.fixture
def no_parser(monkeypatch):
    """Return a function that makes every later parse fail."""

    def forbid():
        monkeypatch.setattr(wgpu_declarations, "_as_python", lambda text: pytest.fail("the header is parsed again"))

    return forbid


def declared(text=HEADER):
    """Declare a header as a module does when it is imported."""
    with wgpu_declarations.read_once():
        ffi = cffi.FFI()
        assert ffi.sizeof("int32_t") == 4  # older releases of wgpu-py ask before they declare anything
        ffi.cdef(text)
        ffi.set_source("name", None)
    return ffi, ffi.dlopen(None)


def check(ffi, lib):
    assert lib.abs(-3) == 3
    assert lib.div(7, 2).quot == 3
    assert lib.Kind_Second == 4
    pair = ffi.new("div_t *", {"quot": 1, "rem": 2})
    assert (pair.quot, pair.rem) == (1, 2)


def test_it_is_parsed_once(cache, no_parser):
    check(*declared())
    no_parser()
    check(*declared())
    assert len(list(cache.iterdir())) == 1


def test_another_header_is_parsed_again(cache):
    declared()
    _, lib = declared(HEADER.replace("Kind_First = 3", "Kind_First = 5"))
    assert lib.Kind_Second == 6
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:40], lambda b: b[:-1] + bytes([b[-1] ^ 1])])
def test_a_damaged_cache_is_replaced(cache, no_parser, damage):
    declared()
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    check(*declared())
    assert file.read_bytes() == whole
    no_parser()
    check(*declared())


def test_without_a_writable_cache_it_is_parsed_again(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BANKSHOT_CACHE", str(tmp_path / "file"))
    check(*declared())
    check(*declared())


def test_cffi_is_restored_afterwards(cache):
    genuine = cffi.FFI
    declared()
    assert cffi.FFI is genuine
    with pytest.raises(cffi.CDefError), wgpu_declarations.read_once():
        cffi.FFI().cdef("this is no C")
    assert cffi.FFI is genuine


def test_a_later_process_does_not_even_import_the_parser(cache):
    program = f"""
import sys, cffi
from bankshot.oracle.wgpu_worker import wgpu_declarations as declarations
with declarations.read_once():
    ffi = cffi.FFI()
    ffi.cdef({HEADER!r})
assert ffi.dlopen(None).abs(-3) == 3
print("pycparser" in sys.modules)
"""
    for parses in ("True", "False"):
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        assert done.stdout.strip() == parses
