# Each target sets up .venv on its first run; later runs start at once.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo compare test check format bench

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[all]"
	touch $(READY)

# Tune SQLite's settings on this machine, in about a minute; the result is the page demo/study.html.
demo: $(READY)
	rm -rf demo && cp -r examples/tune_sqlite demo
	$(BIN)/noregret tune demo/study.toml
	$(BIN)/noregret report demo/study.toml

# Compare algorithms on one noisy problem, as a table and a picture.
compare: $(READY)
	$(BIN)/noregret run igp-ucb amm-ucb gp-ts gp-ei random --problem rkhs-se --rounds 1000 --trials 10 --plot demo.png

test: $(READY)
	$(BIN)/python -m pytest

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
