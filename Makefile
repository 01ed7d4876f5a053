# On a fresh machine `make audit` and `make test` do all the set-up themselves.

READY := .venv/.ready
PY := .venv/bin/python

.PHONY: audit audit-all claims docs test check lint types test-all test-numba test-newest conformance fuzz fuzz-reader adversary mutants bench notebooks clean

audit: $(READY) ## run every kernel in every quick shape, and judge it
	.venv/bin/bankshot audit shaders

audit-all: $(READY) ## in the heavy shapes too, a row for each: minutes
	.venv/bin/bankshot audit shaders --sweep --format table

claims: $(READY) ## decide by running what the documents say, and write docs/claims.md
	$(PY) -m tools.claims --page docs/claims.md

# The tests start hundreds of processes, which would compile every module again where the environment forbids caches.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(READY)
	$(PY) -m pytest -n auto --dist worksteal

check: lint types test

lint: $(READY)
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	$(PY) -m tools.words

types: $(READY)
	.venv/bin/pyright

# Every Python that is found on this machine and that numba and wgpu have wheels for.
test-all: $(READY)
	tools/test_all.sh

# On the oldest supported Numba and the newest, by both compile paths. ARGS goes to pytest: `make test-numba test-newest ARGS=tests/machine`.
test-numba: $(READY)
	tools/test_numba.sh $(ARGS)

# With the newest release of every dependency, past the bounds of pyproject.toml and uv.lock.
test-newest: $(READY)
	tools/test_newest.sh $(ARGS)

# All of the conformance data, which BANKSHOT_CONFORMANCE names: minutes.
conformance: $(READY)
	$(PY) -m tests.conformance

# Generated programs, in the simulator and on lavapipe: they must agree. N programs.
fuzz: $(READY)
	$(PY) -m tests.fuzz $(or $(N),500)

# Valid shaders, changed at random: the reader must neither crash nor hang. N texts.
fuzz-reader: $(READY)
	$(PY) -m tests.wgsl.fuzz_reader $(or $(N),200000)

# Wrong kernels under random manifests and options: none may pass. N tries.
adversary: $(READY)
	$(PY) -m tests.adversary $(or $(N),10000)

# Small faults in sim and oracle: the tests must notice at least 95% of them; CONTRIBUTING.md says how long it takes.
# ARGS: `make mutants ARGS="--seed 2"`.
mutants: $(READY)
	$(PY) -m tools.mutants $(ARGS)

docs: $(READY) ## the site, in docs/_build
	$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build

bench: $(READY) ## against lavapipe, BLAS and the other programs that are here; writes docs/benchmarks.md
	$(PY) -m benchmarks --peers --page docs/benchmarks.md

notebooks: $(READY) ## run them, store their outputs, and write them as HTML into notebooks/output
	.venv/bin/uv sync --quiet --frozen --inexact --all-extras --group render
	$(PY) -m tools.notebooks
	.venv/bin/jupyter nbconvert --to html --output-dir notebooks/output notebooks/*.ipynb

clean:
	rm -rf .venv .venv-* benchmarks/output notebooks/output .pytest_cache .ruff_cache .hypothesis dist

$(READY): pyproject.toml uv.lock tools/setup.sh
	tools/setup.sh
