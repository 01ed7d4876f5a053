"""Counters are refused where the kernel computes with subgroups of a size that the adapter does not have."""

import numpy as np
import pytest

import bankshot
from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge.counter_diff import _check_subgroups
from bankshot.oracle.judge.counter_recording import plan
from bankshot.oracle.wgpu_client import AdapterInfo

LLVMPIPE = AdapterInfo("llvmpipe", "CPU", "Vulkan", "llvmpipe", "1", "0")  # subgroups of 8
GEFORCE = AdapterInfo("GeForce", "DiscreteGPU", "Vulkan", "NVIDIA", "1", "0")  # of 32
UNKNOWN = AdapterInfo("Mystery 3000", "DiscreteGPU", "Vulkan", "mystery", "1", "0")

# The entry point's parameters and what it stores; whether that depends on the size of subgroups.
KERNELS = {
    "the size": ("@builtin(subgroup_size) x: u32", "x", True),
    "a lane": ("@builtin(subgroup_invocation_id) x: u32", "x", True),
    "a number": ("@builtin(subgroup_id) x: u32", "x", True),
    "how many": ("@builtin(num_subgroups) x: u32", "x", True),
    "a member": ("m: Member", "m.x", True),
    "an exchange": ("@builtin(local_invocation_index) x: u32", "subgroupAdd(x)", True),
    "a vote": ("@builtin(local_invocation_index) x: u32", "u32(subgroupAny(x == 3u))", True),
    "other inputs": ("@builtin(local_invocation_index) x: u32, @builtin(workgroup_id) g: vec3u", "x + g.x", False),
    "another member": ("m: Other", "m.x", False),
    "no inputs": ("", "7u", False),
}


def check(name, device, info):
    parameters, value, _ = KERNELS[name]
    language = "requires subgroup_id;" if "subgroup_id" in parameters or "num_sub" in parameters else ""
    text = f"""enable subgroups; {language}
        struct Member {{ @builtin(subgroup_size) x: u32 }}
        struct Other {{ @builtin(local_invocation_index) x: u32 }}
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn main({parameters}) {{ y[0] = {value}; }}"""
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(64, np.uint32)}, device=device, probes="counters")
    _check_subgroups(run, plan(run), info)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_sees_the_size_of_subgroups_is_refused(name):
    if not KERNELS[name][2]:
        check(name, "nvidia", LLVMPIPE)
        return
    with pytest.raises(UsageError) as caught:
        check(name, "nvidia", LLVMPIPE)
    assert str(caught.value) == "--counters: the kernel uses subgroups, of 32 on nvidia and 8 here"


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("device", "info"), [("lavapipe", LLVMPIPE), ("nvidia", GEFORCE), ("amd-cdna", UNKNOWN)])
def test_subgroups_of_one_size_are_compared(name, device, info):
    """Of an adapter without a profile, the size is not known to differ."""
    assert check(name, device, info) is None
