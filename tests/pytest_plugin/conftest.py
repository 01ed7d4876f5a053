"""A small project for pytest within pytest."""

import io

import pytest

from bankshot.oracle.audit import Options, audit
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.reports.audit_json import audit_entry
from bankshot.oracle.reports.audit_text import show_audit
from bankshot.oracle.reports.terminal import console
from tests.pytest_plugin.small_kernel import MANIFEST, SHADER


@pytest.fixture(scope="session")
def _loaded(tmp_path_factory):
    """Whatever a run imports is imported here: pytest within pytest forgets what it imports itself."""
    folder = tmp_path_factory.mktemp("loaded")
    (folder / "k.wgsl").write_text(SHADER)
    (folder / "k.toml").write_text(MANIFEST)
    for plan in plans([folder], Request(quick=True)):
        result = audit(plan.case(plan.shapes[0]), Options(gpu=False))
        show_audit(console(io.StringIO()), result, "full")
        audit_entry(result)


@pytest.fixture
def _alone(monkeypatch):
    """No plugin but those that a test names."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def project(_loaded, _alone, pytester):
    """A folder with a kernel and its manifest; call it with arguments of pytest."""
    (pytester.path / "k.wgsl").write_text(SHADER)
    (pytester.path / "k.toml").write_text(MANIFEST)

    class Project:
        path = pytester.path
        goldens = pytester.path / "golden"

        def __call__(self, *arguments):
            return pytester.runpytest_inprocess(
                "-p", "bankshot.oracle.pytest_plugin.hooks", "-p", "no:cacheprovider", "-W", "ignore", *arguments
            )

        def edit(self, name, *replacement):
            file = self.path / name
            text = file.read_text()
            assert replacement[0] in text
            file.write_text(text.replace(*replacement))

    return Project()
