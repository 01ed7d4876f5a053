"""Explores published litmus tests, and compares what is seen with what their authors expect.

`python -m tools.litmus FOLDER` takes a checkout of reeselevine/webgpu-litmus (WGSL, with the shaders that classify
results) or of hernanponcedeleon/Dat3M (Dartagnan's Vulkan tests, as far as WGSL can say them, and 483 tests of forward
progress). It prints a table, and exits with 1 if a verdict differs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import progress_tests, vulkan_tests, webgpu_tests
from .table import show

SUITES = (webgpu_tests, vulkan_tests, progress_tests)


def main(arguments: list[str] | None = None) -> int:
    """Run the suites that a folder has. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.litmus", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only tests with one of these in their name")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each test")
    options = parser.parse_args(arguments)
    suites = [suite for suite in SUITES if suite.found_in(options.folder)]
    if not suites:
        parser.error(f"{options.folder} is no checkout of webgpu-litmus or Dat3M")
    wanted = tuple(options.names)
    return max(show(suite.TITLE, suite.tests(options.folder, wanted), options.verbose) for suite in suites)


if __name__ == "__main__":
    raise SystemExit(main())
