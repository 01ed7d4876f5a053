"""The palette of the HTML page has the contrast that WCAG 2.2 asks for at level AA, in light and dark."""

import re
from pathlib import Path

import pytest

from bankshot.oracle import reports

CSS = (Path(reports.__file__).parent / "templates" / "page.css").read_text(encoding="utf-8")
TEXT, GRAPHICS = 4.5, 3.0  # success criteria 1.4.3 and 1.4.11


def palettes():
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w+);", part)) for part in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    )
    return {"light": light, "dark": light | dark}


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)  # the usual example of what just fails


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_on_every_ground(scheme):
    colours = palettes()[scheme]
    code = ("ink", "key", "note", "num")
    pairs = [(ink, ground) for ground in ("ground", "panel") for ink in ("ink", "dim", "link", "good", "bad", "warn")]
    pairs += [(ink, ground) for ground in ("ground", "h1", "h2", "h3", "h4", "found") for ink in code]
    pairs += [("link", "found"), ("bad", "h4"), ("dim", "h1"), ("bad", "found")]
    low = {pair: round(contrast(*(colours[name] for name in pair)), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < TEXT} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_and_focus(scheme):
    colours = palettes()[scheme]
    pairs = [("link", "ground"), ("link", "panel"), ("edge", "h2"), ("edge", "h3"), ("edge", "h4"), ("bad", "ground")]
    low = {pair: round(contrast(*(colours[name] for name in pair)), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < GRAPHICS} == {}


def test_numbers_on_the_cells_of_a_bank_map():
    fills = re.findall(r"\.w\d \{ fill: (#\w+); \}", CSS)
    (ink,) = re.findall(r"\.banks g text \{ fill: (#\w+); \}", CSS)
    (first,) = re.findall(r"\.banks \.w0 text \{ fill: (#\w+); \}", CSS)
    assert len(fills) == 9
    assert contrast(first, fills[0]) >= TEXT
    assert [fill for fill in fills[1:] if contrast(ink, fill) < TEXT] == []


def test_print_is_light():
    dark = CSS[: CSS.index("prefers-color-scheme: dark")].rindex("@media")
    assert CSS[dark:].startswith("@media screen and (prefers-color-scheme: dark)")
