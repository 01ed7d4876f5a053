"""The machine as one image: object files linked once per install, which a process takes into memory and runs.

LLVM links too, but at every start, and to import it takes longer than that. This is for Linux on x86-64, and knows what
Numba makes there: code and constants that hold addresses of each other and of C's functions. What has more than that is
`Unlinkable`, and LLVM's. An image is a checksum and a line of JSON, the places of addresses within it, the code itself.
"""

from __future__ import annotations

import json
import mmap
import sys
from collections.abc import Iterable
from ctypes import CDLL, addressof, c_char, c_size_t, c_void_p, cast
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

# Of an object file, by the ELF specification, with its names in comments.
_HEADER = np.dtype([("magic", "S6"), ("_", "V12"), ("machine", "<u2"), ("_2", "V20"), ("sections_at", "<u8"),
                    ("_3", "V12"), ("sections", "<u2"), ("names", "<u2")])  # fmt: skip
_SECTION = np.dtype([("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("_", "<u8"), ("offset", "<u8"),
                     ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("_2", "<u8")])  # fmt: skip
_SYMBOL = np.dtype([("name", "<u4"), ("_", "V2"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")])
_RELOCATION = np.dtype([("place", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_X86_64, _SYMBOLS, _RELOCATIONS, _ABSENT = 62, 2, 4, 8  # EM_X86_64, SHT_SYMTAB, SHT_RELA, SHT_NOBITS
_WRITTEN, _LOADED = 1, 2  # SHF_WRITE, SHF_ALLOC
_ADDRESS = 1  # R_X86_64_64: symbol and addend, in eight bytes


class Unlinkable(Exception):
    """There is no image of this code, or not on this system, or it is damaged: LLVM is to load it."""


@dataclass
class _Object:
    """An object file, taken apart."""

    content: bytes

    def __post_init__(self) -> None:
        header = np.frombuffer(self.content, _HEADER, 1)[0]
        if header["magic"] != b"\x7fELF\2\1" or header["machine"] != _X86_64:
            raise Unlinkable("this is no object file of x86-64")
        self.sections = np.frombuffer(self.content, _SECTION, header["sections"], header["sections_at"])
        self.names = [self.text(header["names"], section["name"]) for section in self.sections]
        table = next(section for section in self.sections if section["type"] == _SYMBOLS)
        self.symbols = self.rows(table, _SYMBOL)
        self.symbol_names = [self.text(table["link"], symbol["name"]) for symbol in self.symbols]

    def bytes_of(self, section: Any) -> bytes:
        if section["type"] == _ABSENT:
            return bytes(int(section["size"]))
        return self.content[int(section["offset"]) : int(section["offset"] + section["size"])]

    def rows(self, section: Any, kind: np.dtype[Any]) -> Any:
        return np.frombuffer(self.bytes_of(section), kind)

    def text(self, section: int, start: int) -> str:
        first = int(self.sections[section]["offset"] + start)
        return self.content[first : self.content.index(b"\0", first)].decode()


@dataclass
class _Image:
    """What is linked so far. Addresses count from its beginning."""

    code: bytearray = field(default_factory=bytearray)
    known: dict[str, int] = field(default_factory=dict[str, int])  # addresses of the units, by symbol
    inside: list[int] = field(default_factory=list[int])  # where addresses stand of what is in it
    outside: dict[str, list[int]] = field(default_factory=dict[str, list[int]])  # and of C's functions

    def add(self, unit: _Object, symbol: str, function: str) -> None:
        """Add a unit, whose function others call by this symbol."""
        starts = {number: self._place(unit, number) for number in _loaded(unit)}
        for section in unit.sections:
            if section["type"] == _RELOCATIONS and section["info"] in starts:
                for each in unit.rows(section, _RELOCATION):
                    self._relocate(unit, each, starts[section["info"]] + int(each["place"]), starts)
        home = unit.symbols[unit.symbol_names.index(function)]
        self.known[symbol] = starts[home["section"]] + int(home["value"])

    def _place(self, unit: _Object, number: int) -> int:
        section = unit.sections[number]
        if section["flags"] & _WRITTEN:
            raise Unlinkable(f"{unit.names[number]} is written to")
        self.code += bytes(-len(self.code) % max(1, int(section["align"])))
        start = len(self.code)
        self.code += unit.bytes_of(section)
        return start

    def _relocate(self, unit: _Object, relocation: Any, place: int, starts: dict[int, int]) -> None:
        """Put the address of a symbol in its place."""
        symbol, name = unit.symbols[relocation["symbol"]], unit.symbol_names[relocation["symbol"]]
        if relocation["type"] != _ADDRESS:
            raise Unlinkable(f"{name or 'a constant'} is reached by a relocation of type {relocation['type']}")
        if symbol["section"] in starts:
            address = starts[symbol["section"]] + int(symbol["value"])
        elif symbol["section"] == 0 and name in self.known:
            address = self.known[name]
        elif symbol["section"] == 0 and relocation["addend"] == 0:
            _address(name)
            self.outside.setdefault(name, []).append(place)
            return
        else:
            raise Unlinkable(f"{name} is nowhere")
        self.code[place : place + 8] = (address + int(relocation["addend"])).to_bytes(8, "little")
        self.inside.append(place)


def _loaded(unit: _Object) -> list[int]:
    """The sections that a process needs. Nothing here throws, so nobody asks how to unwind."""
    return [number for number, section in enumerate(unit.sections)
            if section["flags"] & _LOADED and section["size"] and unit.names[number] != ".eh_frame"]  # fmt: skip


def _address(name: str) -> int:
    """Where a function of C is in this process."""
    try:
        address = cast(getattr(CDLL(None), name), c_void_p).value
    except AttributeError:
        raise Unlinkable(f"{name} is nowhere") from None
    assert address is not None
    return address


def link(units: Iterable[tuple[str, str, bytes]], facts: Any) -> bytes:
    """The image of units: of each its symbol, its function's name, its object file. A unit stands after those that it
    calls; the last one is what `load` gives the address of. `facts`: what it gives beside that. Raises Unlinkable."""
    if sys.platform != "linux":
        raise Unlinkable("this is not Linux")
    image = _Image()
    for symbol, function, content in units:
        image.add(_Object(content), symbol, function)
    entry = list(image.known.values())[-1]
    head = {"entry": entry, "inside": len(image.inside), "outside": image.outside, "facts": facts}
    body = json.dumps(head).encode() + b"\n" + np.array(image.inside, "<u4").tobytes() + image.code
    return b"%08x\n" % crc32(body) + body


def load(content: bytes) -> tuple[int, Any, object]:
    """Take an image into memory: the address of its last unit, its facts, and what it lives as long as. Raises
    Unlinkable where it is damaged, OSError where the system does not let it."""
    checksum, _, body = content.partition(b"\n")
    if checksum != b"%08x" % crc32(body):
        raise Unlinkable("the image is damaged")
    line, _, body = body.partition(b"\n")
    head = json.loads(line)
    inside = np.frombuffer(body, "<u4", head["inside"])
    area = mmap.mmap(-1, len(body) - inside.nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.write(body[inside.nbytes :])
    start = addressof(c_char.from_buffer(area))
    addresses = np.ndarray(len(area) - 7, "<u8", area, strides=(1,))  # one at every byte
    addresses[inside] += np.uint64(start)
    for name, places in head["outside"].items():
        addresses[places] = _address(name)
    if CDLL(None).mprotect(c_void_p(start), c_size_t(len(area)), mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise OSError("memory cannot be made executable")
    return start + head["entry"], head["facts"], area
