# Each target sets up .venv on its first run; later runs start at once.
PYTHON ?= python3
# Some tests wait more than they compute, so that two cores can serve four of them.
JOBS ?= 4
BIN := .venv/bin
READY := .venv/.ready
TESTED := .venv/.tested
TUNE := .venv/.tune
# What `make test` leaves to `make nightly`: many seeds, whole documents, kills, browsers and packages of neighbours.
FOLDERS := tests/statistics tests/documents tests/siege
NIGHTLY ?= $(FOLDERS) docs README.md CONTRIBUTING.md
# Tests and commands start many processes: let each use what the first has compiled.
unexport PYTHONDONTWRITEBYTECODE
# They share the cores: on more than one thread each, BLAS would wait for itself.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile

.PHONY: demo compare test quick nightly check format bench wheel versions

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[all]"
	touch $(READY) $(TESTED) $(TUNE)

# `make test` needs no tools for documentation, types and Parquet: half of the download.
$(TESTED): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $(TESTED) $(TUNE)

# `make demo` needs a tenth of what the tests need.
$(TUNE): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[tune]"
	touch $(TUNE)

# Tune a compression on this machine, in a minute at most; the result is the page demo/study.html.
demo: $(TUNE)
	rm -rf demo && cp -r examples/tune_compression demo
	$(BIN)/noregret tune demo/study.toml
	$(BIN)/noregret report demo/study.toml

# Compare algorithms on one noisy problem, as a table and a picture.
compare: $(READY)
	$(BIN)/noregret run igp-ucb amm-ucb gp-ts gp-ei random --problem rkhs-se --rounds 1000 --trials 10 --plot demo.png

# The tests of what src does, and the examples in its docstrings: 8 to 11 minutes of CPU time by the machine, 4 to 6 minutes on two cores.
test: $(TESTED)
	$(PYTEST) $(FOLDERS:%=--ignore=%) tests src

# Those of them that take less than about a third of a second each, in a minute.
quick: JOBS = 2
quick: $(TESTED)
	$(PYTEST) $(FOLDERS:%=--ignore=%) -m "not slow" tests src

# All other tests. A part of them: make nightly NIGHTLY=tests/siege, or the third of five shares: make nightly SHARE=2/5
nightly: $(READY)
	$(PYTEST) $(SHARE:%=--share=%) $(NIGHTLY)

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python -m benchmarks

# Build what is published, and try the wheel in an environment that has nothing else.
wheel: $(READY)
	rm -rf dist build/empty
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv build/empty
	build/empty/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	cd build && empty/bin/python ../tests/as_installed.py

# Every test on every Python to be had, and with the lowest versions that pyproject.toml allows.
versions:
	.ci/versions
