#!/usr/bin/env bash
# Runs the tests, or what it is given, on the oldest supported Numba and on the newest, by the fast compile path and the
# plain one, each version in its own environment. A release candidate that is newer than all is tried on the plain path.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=.venv/bin/uv

# newest [OPTION...]: the newest Numba that can be installed.
newest() { echo numba | "$uv" pip compile --quiet --no-deps --no-header --no-annotate "$@" - | sed 's/.*==//'; }

failed=()
# try VERSION PATH... -- ARGUMENT...
try() {
    local version=$1 environment=.venv-numba-$1 paths=()
    shift
    while [ "$1" != -- ]; do paths+=("$1"); shift; done
    shift
    UV_PROJECT_ENVIRONMENT=$environment "$uv" sync --quiet --frozen --inexact --all-extras --python .venv/bin/python
    "$uv" pip install --quiet --prerelease allow --python "$environment" "numba==$version"
    for path in "${paths[@]}"; do
        echo "numba $version, $path path"
        BANKSHOT_COMPILE=$path "$environment/bin/python" -m pytest -q -n auto --dist worksteal "$@" || failed+=("$version-$path")
    done
}

oldest=$(sed -n 's/.*"numba>=\([0-9.]*\),.*/\1.0/p' pyproject.toml)
release=$(newest)
candidate=$(newest --prerelease allow)
try "$oldest" fast plain -- "$@"
try "$release" fast plain -- "$@"
if [ "$candidate" != "$release" ]; then try "$candidate" plain -- "$@"; fi
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed on numba ${failed[*]}"
    exit 1
fi
