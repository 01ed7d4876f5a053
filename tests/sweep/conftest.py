"""A folder with the kernel that sweeps are tested with."""

import pytest

from tests.sweep.scaled_cases import MANIFEST, SHADER


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "scale.toml").write_text(MANIFEST)
    return tmp_path
