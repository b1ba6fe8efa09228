# Every target sets itself up: a .venv beside this file, dependencies by name.
.PHONY: demo test quick lint matrix bench validate attack evidence evidence-check docs clean
.DEFAULT_GOAL := demo

PYTHON ?= python3
BIN := .venv/bin
# Real campaigns, where they are at hand; tests that need them skip, saying so, where they are not.
export PROBEVAL_DATA ?= $(if $(wildcard ../shared/data/README.md),$(abspath ../shared/data),)
export PROBEVAL_ORACLES ?= $(if $(wildcard ../shared/oracles/README.md),$(abspath ../shared/oracles),)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("probeval needs Python 3.11, 3.12 or 3.13: make PYTHON=python3.12") if not (3, 11) <= sys.version_info < (3, 14) else None'
	$(PYTHON) -m venv .venv

.venv/runtime: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[web]'
	@touch $@

# What is never imported need not be compiled; the rest compiles when it is.
.venv/dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@touch .venv/runtime $@

demo: .venv/runtime
	$(BIN)/probeval demo

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A worker of pytest on every core, and a thread for each. The quick tests run first. Bytecode is kept, whatever the
# environment says: hundreds of processes import the same files. It is made while mypy works, which has one thread.
test quick: export OMP_NUM_THREADS = 1
test quick: export PYTHONDONTWRITEBYTECODE =
PYTEST := $(BIN)/python -m pytest
SPHINX := $(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

quick: .venv/dev
	$(PYTEST) --collect-only > /dev/null & $(MAKE) lint && wait
	$(PYTEST) -n auto --dist worksteal -m "not slow and not pages and not validation"

test: .venv/dev
	$(PYTEST) --collect-only > /dev/null & $(MAKE) lint && wait
	$(SPHINX) > .venv/sphinx 2>&1 & $(PYTEST) -n auto --dist worksteal -m "not validation"; tests=$$?; \
	wait $$!; pages=$$?; cat .venv/sphinx; exit $$((tests + pages))

# Every supported Python that is installed: PYTHONS="python3.11 /opt/python3.13/bin/python" names them.
matrix:
	nice $(PYTHON) .ci/matrix.py $(PYTHONS)

bench: .venv/dev
	$(BIN)/python tests/bench/foundation.py
	$(BIN)/python tests/bench/scores.py
	$(BIN)/python tests/bench/relevance.py
	$(BIN)/python tests/bench/growth.py
	$(BIN)/python -m tests.bench.on_dask
	$(BIN)/python tests/bench/first_answer.py

validate: .venv/dev
	$(BIN)/python -m pytest --hypothesis-profile many -m "validation or hypothesis"

# Held-out campaigns judged again: the cells that are missing or that a change touched, for BUDGET hours, and the pages.
BUDGET ?= 3
JOBS ?= 2
EVIDENCE := $(BIN)/probeval evidence docs/evidence/plan.toml --data $(or $(PROBEVAL_DATA),.) --pages docs/evidence

evidence: export OMP_NUM_THREADS = 1
evidence: .venv/runtime
	$(EVIDENCE) --budget $(BUDGET) --jobs $(JOBS)

evidence-check: .venv/runtime
	$(EVIDENCE) --check

# Fills the table of docs/security.md. SCALE=.1 takes a tenth of the cases.
attack: .venv/dev
	$(BIN)/python -m tests.attack --scale $(or $(SCALE),1)

docs: .venv/dev
	$(SPHINX)
	@echo "Open docs/_build/html/index.html"

clean:
	rm -rf .venv .venv-3.* build dist docs/_build docs/reference/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis probeval-demo
