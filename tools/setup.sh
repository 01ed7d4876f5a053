#!/usr/bin/env bash
# Makes .venv with the locked dependencies, and sees to it that there is a Vulkan adapter. Called by make; runs again
# only when what it depends on has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }

# apt PACKAGE...: install where that is allowed; 1 where it is not.
apt() {
    local sudo=()
    if [ "$(id -u)" != 0 ]; then sudo=(sudo -n); fi
    command -v apt-get >/dev/null || return 1
    "${sudo[@]}" true 2>/dev/null || return 1
    say "installing $*"
    "${sudo[@]}" apt-get update -qq >&2 || true
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if new_enough "$candidate"; then python=$candidate; return; fi
    done
    return 1
}
find_python || { apt python3 python3-venv && find_python; } || { say "needs Python 3.11 or newer; set PYTHON to one"; exit 1; }

if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    say "making .venv with $("$python" --version)"
    # Debian's Python comes without ensurepip.
    "$python" -m venv --clear .venv 2>/dev/null ||
        { apt python3-venv && "$python" -m venv --clear .venv; } ||
        { say "needs Python's venv module: apt-get install python3-venv"; exit 1; }
fi
.venv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
.venv/bin/uv sync --quiet --frozen --inexact --all-extras --python .venv/bin/python

# Type checkers find files by folders alone: the layout that a wheel has, as links.
mkdir -p .venv/layout/bankshot
ln -sfn "$PWD"/bankshot/* "$PWD/sim" "$PWD/oracle" .venv/layout/bankshot/

has_adapter() { .venv/bin/python -c 'import sys; from bankshot.oracle import wgpu_client as gpu; sys.exit(not {i.profile for i in gpu.adapters()} - {"swiftshader"})'; }
if ! has_adapter; then
    apt mesa-vulkan-drivers libvulkan1 || true
    has_adapter || say "no Vulkan adapter, so nothing is compared with wgpu; apt-get install mesa-vulkan-drivers libvulkan1"
fi

has_swiftshader() { .venv/bin/python -c 'import sys; from bankshot.oracle.wgpu_worker import vulkan_drivers as drivers; sys.exit(not drivers.found())'; }
if ! has_swiftshader; then
    say "fetching SwiftShader, to compare with it too"
    tools/swiftshader.sh || say "there is no SwiftShader, so nothing is compared with it (bankshot adapters says where it may be)"
fi
touch .venv/.ready
