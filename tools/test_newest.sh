#!/usr/bin/env bash
# Runs the tests, or what it is given, with the newest release of every dependency, whatever bounds and lock say.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=.venv/bin/uv environment=.venv-newest
UV_PROJECT_ENVIRONMENT=$environment "$uv" sync --quiet --frozen --inexact --all-extras --python .venv/bin/python
"$uv" pip install --quiet --upgrade --python "$environment" numpy numba wgpu click rich jinja2 pygments pytest pytest-xdist hypothesis
"$uv" pip list --python "$environment" | grep -E '^(numpy|numba|wgpu|click|rich|pytest) '
"$environment/bin/python" -m pytest -q -n auto --dist worksteal "$@"
