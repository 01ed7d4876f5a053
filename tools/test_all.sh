#!/usr/bin/env bash
# Runs the tests on every supported Python of this machine, each in its own environment. Says which are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

# find VERSION: the path of that Python, on PATH or among pyenv's.
find() {
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        "$candidate" -c 'import sys; print(sys.executable)' 2>/dev/null && return
    done
    return 1
}

failed=()
for version in 3.11 3.12 3.13 3.14; do
    if ! python=$(find "$version"); then
        echo "python $version: not on this machine"
        continue
    fi
    echo "python $version: $python"
    UV_PROJECT_ENVIRONMENT=.venv-$version .venv/bin/uv sync --quiet --frozen --all-extras --python "$python"
    ".venv-$version/bin/python" -m pytest -q || failed+=("$version")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed on python ${failed[*]}"
    exit 1
fi
