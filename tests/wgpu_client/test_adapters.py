"""Adapters: listing and choosing them, finding the drivers of browsers, and reporting what an adapter cannot run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle import wgpu_client
from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import Lacking, NoAdapter, UsageError
from bankshot.oracle.wgpu_client import adapter_choice
from bankshot.oracle.wgpu_worker import vulkan_drivers

ROOT = Path(__file__).parents[2]
HALVES = """\
enable f16;
@group(0) @binding(0) var<storage, read_write> y: array<f16>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = f16(i); }
"""
WORDS = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = i; }
"""


# ---- drivers ----


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """A machine with one browser."""
    for name in (*vulkan_drivers.CHOSEN, vulkan_drivers.ASKED, vulkan_drivers.ADDED):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "chromium-12" / "chrome-linux"
    folder.mkdir(parents=True)
    (folder / vulkan_drivers.MANIFEST).write_text("{}")
    monkeypatch.setattr(
        vulkan_drivers, "PLACES", (str(tmp_path / "nothing"), str(tmp_path / "chromium-*" / "chrome-linux*"))
    )
    return folder / vulkan_drivers.MANIFEST


def test_the_driver_of_a_browser_is_found(browser):
    assert vulkan_drivers.found() == [browser]


def test_a_folder_without_a_manifest_is_passed_over(browser, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(vulkan_drivers, "PLACES", (str(tmp_path / "empty"), str(browser.parent)))
    assert vulkan_drivers.found() == [browser]


def test_it_follows_the_drivers_in_vk_add_driver_files(browser, monkeypatch):
    monkeypatch.setenv(vulkan_drivers.ADDED, "/mine.json")
    for _ in range(2):  # once is enough
        vulkan_drivers.offer()
        assert os.environ[vulkan_drivers.ADDED] == f"/mine.json{os.pathsep}{browser}"


@pytest.mark.parametrize("name", vulkan_drivers.CHOSEN)
def test_a_users_choice_of_drivers_is_kept(browser, monkeypatch, name):
    monkeypatch.setenv(name, "/mine.json")
    assert vulkan_drivers.found() == []


def test_drivers_can_be_named_in_an_environment_variable(browser, tmp_path, monkeypatch):
    other, folder = tmp_path / "other.json", tmp_path / "many"
    folder.mkdir()
    for file in (other, folder / "a.json", folder / "b.json"):
        file.write_text("{}")
    monkeypatch.setenv(vulkan_drivers.ASKED, f"{other}{os.pathsep}{folder}")
    assert vulkan_drivers.found() == [other, folder / "a.json", folder / "b.json"]
    monkeypatch.setenv(vulkan_drivers.ASKED, "")
    assert vulkan_drivers.found() == []
    monkeypatch.setenv(vulkan_drivers.ASKED, str(tmp_path / "none.json"))
    with pytest.raises(UsageError, match=r"BANKSHOT_VULKAN_DRIVERS names .*none.json, which is neither"):
        vulkan_drivers.found()


# ---- choice ----


def known(*names):
    return [wgpu_client.AdapterInfo(name, kind, "Vulkan", "", "1", "0.32") for name, kind in names]


def offered(found):
    return [wgpu_client.Offer(info, (), (4, 32), {}) for info in found]


LLVMPIPE = "llvmpipe (LLVM 15, 256 bits)"  # names may have commas


@pytest.fixture
def three(monkeypatch):
    found = known(("NVIDIA H200", "DiscreteGPU"), (LLVMPIPE, "CPU"), ("SwiftShader Device", "CPU"))
    monkeypatch.setattr(adapter_choice, "_offers", lambda: offered(found))


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (None, [None]),
        ("llvmpipe", [LLVMPIPE]),
        (f"{LLVMPIPE},nvidia", [LLVMPIPE, "NVIDIA H200"]),
        ("discrete", ["NVIDIA H200"]),
        ("cpu", [LLVMPIPE]),
        ("lavapipe, swift", [LLVMPIPE, "SwiftShader Device"]),
        ("All", ["NVIDIA H200", LLVMPIPE, "SwiftShader Device"]),
    ],
)
def test_adapters_are_chosen_by_name_or_kind(three, asked, names):
    assert list(wgpu_client.parse_adapters(asked)) == names


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ("llvmpipe,cpu", UsageError, "--adapter llvmpipe,cpu: llvmpipe .* is named twice"),
        ("llvmpipe,voodoo", NoAdapter, "no adapter matches 'voodoo'; there are: NVIDIA H200"),
        ("", UsageError, "--adapter : a name is empty"),
        ("llvmpipe,", UsageError, "--adapter llvmpipe,: a name is empty"),
    ],
)
def test_a_selector_without_a_match_is_reported(three, asked, error, message):
    with pytest.raises(error, match=message):
        wgpu_client.parse_adapters(asked)


def test_a_missing_software_adapter_comes_with_advice(monkeypatch):
    monkeypatch.setattr(adapter_choice, "_offers", lambda: offered(known(("Chip", "DiscreteGPU"))))
    with pytest.raises(NoAdapter, match=r"apt-get install chromium-common\); elsewhere set BANKSHOT_VULKAN_DRIVERS"):
        wgpu_client.require_adapter("swiftshader")
    with pytest.raises(NoAdapter, match="apt-get install mesa-vulkan-drivers"):
        wgpu_client.require_adapter("lavapipe")


# ---- features ----


@pytest.mark.usefixtures("adapter")
def test_the_command_lists_every_adapter():
    lines = CliRunner().invoke(main, ["adapters"]).stdout.splitlines()
    entries = json.loads(CliRunner().invoke(main, ["adapters", "--json"]).stdout)["cases"]
    assert [entry["name"] for entry in entries] == [info.name for info in wgpu_client.adapters()]
    assert lines[0] == f"{entries[0]['name']}, the default"
    for info, entry in zip(wgpu_client.adapters(), entries, strict=True):
        assert f"  {info}" in lines
        assert (entry["driver"], entry["version"]) == (info.driver, info.version)
        assert entry["limits"]["maxComputeInvocationsPerWorkgroup"] >= 256


def test_an_adapters_profile_has_its_subgroups(any_adapter):
    """A profile that rounds as an adapter does must also have its subgroup size."""
    import bankshot
    from bankshot.oracle.wgpu_client import adapter_survey

    (found,) = [each for each in adapter_survey.survey() if each.offer.info == any_adapter]
    assert found.profile == (any_adapter.profile or adapter_choice.FALLBACK)
    if not found.known:
        pytest.skip(f"no device profile is known for {any_adapter.name}")
    assert found.subgroup_size == bankshot.devices.get(found.profile).subgroup_size


def test_a_kernel_is_timed_by_the_adapters_clock(any_adapter):
    (offer,) = [each for each in wgpu_client.offers() if each.info == any_adapter]
    run = wgpu_client.run(WORDS, "main", (1, 1, 1), {"y": np.zeros(4, np.uint32)}, adapter=any_adapter.name, repeats=3)
    if "timestamp-query" not in offer.features:
        assert run.kernel_seconds == ()
        return
    assert len(run.kernel_seconds) == 3
    for own, whole in zip(run.kernel_seconds, run.seconds, strict=True):
        assert 0 <= own <= whole


def test_a_missing_feature_is_named(swiftshader):
    with pytest.raises(Lacking, match=r"the shader enables f16, and SwiftShader.* has no shader-f16"):
        wgpu_client.run(HALVES, "main", (1, 1, 1), {"y": np.zeros(4, np.float16)}, adapter=swiftshader.name)


def test_diff_reports_what_an_adapter_cannot_run(tmp_path, lavapipe, swiftshader):
    (tmp_path / "halves.wgsl").write_text(HALVES)
    (tmp_path / "words.wgsl").write_text(WORDS)
    halves = [str(tmp_path / "halves.wgsl"), "--bind", "y=zeros:f16:4"]
    words = [str(tmp_path / "words.wgsl"), "--bind", "y=zeros:u32:4"]

    def diff(*arguments):
        return CliRunner().invoke(main, ["diff", *arguments])

    one = diff(*halves, "--adapter", "swiftshader")
    assert one.exit_code == 1, "nothing was compared"
    assert "NOT RUN  the shader enables f16" in one.stdout
    both = diff(*halves, "--adapter", "lavapipe,swiftshader")
    assert both.exit_code == 0, both.output
    summary = both.stdout.splitlines()[-1]
    assert summary.startswith("diff: 1 of 2 cases clean")
    assert "not compared with SwiftShader Device (Subzero): the shader enables f16, and " in summary
    entries = json.loads(diff(*words, "--adapter", "lavapipe,swiftshader", "--json").stdout)["cases"]
    assert [(entry["gpu"]["profile"], entry["device"], entry["ok"]) for entry in entries] == [
        ("lavapipe", "lavapipe", True),
        ("swiftshader", "swiftshader", True),
    ]
    for entry in entries:
        assert entry["seconds"][f"kernel on {entry['gpu']['name']}"] >= 0


def test_an_audit_compares_a_run_with_several_adapters(tmp_path, lavapipe, swiftshader):
    (tmp_path / "halves.wgsl").write_text(HALVES)
    (tmp_path / "words.wgsl").write_text(WORDS)
    page = tmp_path / "page.html"

    def audit(name, kind, *options):
        given = [f"{tmp_path / name}.wgsl", "--bind", f"y=zeros:{kind}:4", "--adapter", "lavapipe,swiftshader"]
        return CliRunner().invoke(main, ["audit", *given, *options])

    (entry,) = json.loads(audit("words", "u32", "--html", str(page), "--json").stdout)["cases"]
    names = [lavapipe.name, swiftshader.name]
    assert [adapter["name"] for adapter in entry["gpus"]] == names
    assert entry["gpu"] == entry["gpus"][0]
    assert [(check["against"], check["ok"]) for check in entry["outputs"]] == [
        (f"wgpu on {name}", True) for name in names
    ]
    assert all(f"GPU: {name}" in page.read_text(encoding="utf-8") for name in names)
    words = audit("halves", "f16").stdout
    assert f"ok       y against wgpu on {lavapipe.name}" in words
    assert f"note: not compared with wgpu: the shader enables f16, and {swiftshader.name} has no" in words


COMPOSED = """\
@group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { let v = y[id.x]; y[id.x] = EXPR; }
"""


@pytest.mark.parametrize(
    ("expression", "right", "off"),
    [
        ("normalize(v)", "v / length(v)", "swiftshader"),
        ("mix(v, v.wzyx, v)", "v * v.wzyx + v", "lavapipe"),
        ("smoothstep(v, v.wzyx, vec4(0.5))", "clamp(v, v.wzyx, vec4(0.5))", "lavapipe"),
        ("v % v.wzyx", "v / v.wzyx", "lavapipe"),
        ("mat4x4(v, v.wzyx, v.yxwz, v.zwxy) * v", "2.0 * v + v.wzyx", "lavapipe"),
        ("unpack4x8snorm(bitcast<u32>(v.x))", "vec4<f32>(unpack4xI8(bitcast<u32>(v.x))) * 0.5", "swiftshader"),
        ("unpack4x8unorm(bitcast<u32>(v.x))", "vec4<f32>(unpack4xU8(bitcast<u32>(v.x))) * 0.5", "swiftshader"),
        ("vec4(unpack2x16snorm(bitcast<u32>(v.x)), v.zw)", "vec4(v.xy, v.zw)", "swiftshader"),
        ("vec4(unpack2x16unorm(bitcast<u32>(v.x)), v.zw)", "vec4(v.xy, v.zw)", "swiftshader"),
        ("quantizeToF16(v)", "round(v)", "swiftshader"),
        ("vec4(determinant(mat4x4(v, v.wzyx, v.yxwz, v.xzyw)))", "vec4(dot(v, v.wzyx))", "swiftshader"),
    ],
)
def test_builtins_that_an_adapter_computes_differently_are_compared_by_bounds(
    tmp_path, request, expression, right, off
):
    """`right` has no such builtin, so it is compared by bits."""
    adapter = request.getfixturevalue(off)
    for name, text, how in (("wrong", expression, "derived"), ("right", right, "exact")):
        (tmp_path / f"{name}.wgsl").write_text(COMPOSED.replace("EXPR", text))
        given = [str(tmp_path / f"{name}.wgsl"), "--bind", "y=normal:f32:1024,4", "--grid", "16"]
        shown = CliRunner().invoke(main, ["diff", *given, "--adapter", adapter.name, "--json"]).stdout
        (case,) = json.loads(shown)["cases"]
        (check,) = case["outputs"]
        assert (check["rule"]["name"], check["mismatches"]) == (how, 0), (name, check)


def test_float_rewrites_are_proved_without_a_manifest(tmp_path, lavapipe):
    (tmp_path / "sum.wgsl").write_text(COMPOSED.replace("EXPR", "v * v + v.wzyx"))
    given = [
        str(tmp_path / "sum.wgsl"),
        "--bind",
        "y=normal:f32:64,4",
        "--adapter",
        lavapipe.name,
        "--device",
        "nvidia",
    ]
    shown = CliRunner().invoke(main, ["diff", *given])
    assert shown.exit_code == 0, shown.output
    assert "within bounds: the driver reorders floats; wgpu agrees bit for bit where each operation" in shown.stdout


def test_both_software_adapters_fit_one_process(lavapipe, swiftshader):
    """In a new process, without what other tests have loaded."""
    bare = {name: value for name, value in os.environ.items() if name != vulkan_drivers.ADDED}
    code = "from bankshot.oracle.wgpu_client import adapters"
    code += "; print(sorted(i.profile for i in adapters() if i.kind == 'CPU'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=bare, capture_output=True, text=True, check=True)
    assert done.stdout == "['lavapipe', 'swiftshader']\n"


def test_limits_that_an_adapter_does_not_have_are_left_out():
    assert adapter_choice._by_webgpu({"max-bind-groups": 4, "max-push-constants": 128}) == {"maxBindGroups": 4}
