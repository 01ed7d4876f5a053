"""A folder with a kernel, for manifests."""

import pytest


@pytest.fixture
def write(tmp_path):
    (tmp_path / "k.wgsl").write_text("@compute @workgroup_size(1) fn main() {}")

    def write(text):
        path = tmp_path / "k.toml"
        path.write_text(text)
        return path

    return write
