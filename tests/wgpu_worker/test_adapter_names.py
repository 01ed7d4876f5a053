"""Which device profile an adapter has, which words choose it, and where its driver may be installed."""

import sys

import pytest

from bankshot.oracle.wgpu_worker import vulkan_drivers
from bankshot.oracle.wgpu_worker.messages import AdapterInfo


def adapter(name, driver=""):
    return AdapterInfo(name, "DiscreteGPU", "Vulkan", driver, "1.0", "0.31.0")


@pytest.mark.parametrize(
    ("name", "driver", "profile"),
    [
        ("llvmpipe (LLVM 19.1.7, 256 bits)", "llvmpipe", "lavapipe"),
        ("SwiftShader Device (Subzero)", "SwiftShader driver", "swiftshader"),
        ("NVIDIA H200", "NVIDIA", "nvidia"),
        ("H200", "NVIDIA", "nvidia"),  # the driver tells
        ("GeForce RTX 4090", "", "nvidia"),
        ("Tesla T4", "", "nvidia"),
        ("AMD Radeon RX 7900 XTX", "radv", None),
        ("Apple M3", "", None),
    ],
)
def test_the_profile_of_an_adapter(name, driver, profile):
    assert adapter(name, driver).profile == profile


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        ("t4", True),
        ("TESLA", True),
        ("discrete", True),
        ("vulkan", True),
        ("535", True),
        ("nvidia", True),
        ("cpu", False),
    ],
)
def test_any_of_its_facts_chooses_an_adapter(wanted, matches):
    """The name, kind, backend, driver and profile, in any case."""
    assert adapter("Tesla T4", "driver 535").matches(wanted) == matches


@pytest.mark.parametrize(
    "place",
    [
        f"{sys.prefix}/share/swiftshader",
        "/usr/lib/chromium",
        "/usr/lib/chromium-browser",
        "/usr/lib64/chromium-browser",
        "/snap/chromium/current/usr/lib/chromium-browser",
        "/opt/google/chrome",
        "~/.cache/ms-playwright/chromium-*/chrome-linux*",
        "~/.cache/puppeteer/chrome/linux-*/chrome-linux*",
    ],
)
def test_drivers_are_looked_for_where_systems_install_browsers(place):
    assert place in vulkan_drivers.PLACES
