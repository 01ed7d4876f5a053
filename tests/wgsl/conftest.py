"""The tests of portability and preprocessing compare with wgpu, through the same adapters as the oracle's tests."""

from tests.oracle.conftest import adapter as adapter
