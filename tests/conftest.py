"""What all tests share: golden files (`--update-golden` rewrites them) and the conformance data."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import NoAdapter
from tests.conformance import data

pytest_plugins = ["pytester"]
# Of the tests' own adapters. Commands that tests run compare with wgpu, or not, as the test says.
os.environ.setdefault("BANKSHOT_TESTS_REQUIRE_GPU", os.environ.pop("BANKSHOT_REQUIRE_GPU", ""))
for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
    os.environ.pop(name, None)  # what a command does in CI is tested by setting them, wherever the tests run
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell, where tests of interrupts hang
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("BANKSHOT_VERIFY", "1")  # every program that a test runs, after each pass

ROOT = Path(__file__).parent.parent
FILES = Path(__file__).parent / "files"


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None):
        import bankshot

        # Once, here, and not in every worker at the same time.
        bankshot.simulate("@compute @workgroup_size(1) fn main() {}", grid=1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector off the collected tests, 600,000 objects that stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what was obtained into the golden files")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, Path], None]:
    """`golden(obtained, path)`: the text must be that of the file. A missing file is a failure."""

    def check(obtained: str, path: Path) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(obtained, encoding="utf-8")
        assert path.is_file(), f"no golden file {path.relative_to(ROOT)}: run with --update-golden and review it"
        assert obtained == path.read_text(encoding="utf-8"), f"differs from {path.relative_to(ROOT)}"

    return check


@pytest.fixture(scope="session")
def conformance() -> Callable[[str], Iterator[dict[str, Any]]]:
    """`conformance("valid")`: the records of one file of the conformance data; skips where there is none."""

    def records(kind: str) -> Iterator[dict[str, Any]]:
        if not data.path(kind).is_file():
            pytest.skip(f"CONFORMANCE DATA ABSENT: no {data.path(kind)}; set BANKSHOT_CONFORMANCE to its folder")
        return data.records(kind)

    return records


# ---- adapters, which are never missing silently ----


@pytest.fixture(scope="session")
def adapter() -> wgpu_client.AdapterInfo:
    """The default adapter. Without one, fails where BANKSHOT_REQUIRE_GPU=1, and else skips, with what to install."""
    try:
        return wgpu_client.require_adapter()
    except NoAdapter as error:
        if os.environ["BANKSHOT_TESTS_REQUIRE_GPU"] not in ("", "0"):
            pytest.fail(f"BANKSHOT_REQUIRE_GPU=1, but {error}")
        pytest.skip(str(error))


def named(name: str) -> wgpu_client.AdapterInfo:
    """An adapter that not every machine has; skips without it, with what to install."""
    try:
        return wgpu_client.require_adapter(name)
    except NoAdapter as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def lavapipe() -> wgpu_client.AdapterInfo:
    return named("lavapipe")


@pytest.fixture(scope="session")
def swiftshader() -> wgpu_client.AdapterInfo:
    return named("swiftshader")


@pytest.fixture(scope="session", params=["default", "swiftshader"])
def any_adapter(request: pytest.FixtureRequest, adapter: wgpu_client.AdapterInfo) -> wgpu_client.AdapterInfo:
    """The default adapter, and SwiftShader beside it."""
    if request.param == "default":
        return adapter
    other = named(request.param)
    if other == adapter:
        pytest.skip(f"{other.name} is the default adapter here")
    return other
