# Everything needs only Python 3.11 or newer with venv and pip, and make.
# Each target makes the virtual environment .venv first where it is missing or out of date.

PYTHON ?= python3
# Test processes at once, and options for `toolgym train`, as in  make train ARGS="--seed 1"
JOBS ?= 2
ARGS ?=
# One adapter for `make test-adapters`, as in  make test-adapters NAME=mcp; all of them without it
NAME ?=

BIN := .venv/bin
READY := .venv/.ready
# Tests start a hundred processes; where Python is told to keep no bytecode, each of them would
# compile all our modules anew.
TEST_PYTHON := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python
PYTEST := $(TEST_PYTHON) -m pytest -n $(JOBS) --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup train train-smollm2 test test-slow test-adapters test-all check docs docs-serve format dist clean distclean

help:  ## Print this list
	@awk -F ':.*  ## ' '/^[a-z0-9-]+:.*  ## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Make the virtual environment .venv with all that is needed here

# PyTorch comes first and by its exact version: a range, asked for by another package, would be
# filled with the newest build there is, several GB of it.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "toolgym needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ". Say which one to use: make setup PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[train,dev,docs]"
	@touch $(READY)

train: $(READY)  ## Teach the tiny model to use the SQL tools, and write a report
	$(BIN)/toolgym train sqlgym/Explore-v0 $(ARGS)

# Interrupt it when you like: the same command goes on where it was.
train-smollm2: $(READY)  ## Teach a real model to write SQL, two hours on two cores; ARGS=--quick for less
	$(BIN)/toolgym recipe smollm2 $(ARGS)

test: $(READY)  ## Run the tests, without the slow ones
	$(PYTEST) -m "not slow"

# In the order of the folders: files of few long trainings come first, and pytest-xdist would begin
# with those of many short tests. What measures how times grow has one file, and so shares out tests;
# it knows of neighbours on the machine.
test-slow: $(READY)  ## Run the slow tests only
	$(PYTEST) --no-loadscope-reorder -m slow --durations=25 --ignore=tests/test_growth.py
	$(TEST_PYTHON) -m pytest -n $(JOBS) --dist load -m slow tests/test_growth.py

# Needs no .venv: each adapter to another framework has an environment of its own in .venvs.
test-adapters:  ## Run the tests of the adapters to other frameworks; NAME=mcp for one
	$(PYTHON) tools/adapter_tests.py --jobs $(JOBS) $(NAME)

test-all: test test-slow  ## Run all tests, and those without torch on every supported interpreter
	$(BIN)/python tools/interpreters.py -n $(JOBS) --dist loadfile

check: $(READY)  ## Lint, format, types, the arrows between the packages, lengths
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_lengths.py

docs: $(READY)  ## Build the documentation site into build/site/html; fails on a broken link
	$(BIN)/python tools/make_site.py

docs-serve: $(READY)  ## Show the documentation site at http://localhost:8000, anew after each change
	$(BIN)/python tools/make_site.py --serve

format: $(READY)  ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Needs no .venv: what is released is built by nothing but the two packages that build and check it.
dist:  ## Build the wheel and the source distribution into dist/, and check them
	rm -rf dist .venvs/dist
	$(PYTHON) -m venv .venvs/dist
	.venvs/dist/bin/python -m pip install --quiet -c constraints.txt build twine
	.venvs/dist/bin/python -m build
	.venvs/dist/bin/python -m twine check --strict dist/*

clean:  ## Remove build outputs and caches, not the runs
	rm -rf build dist .venvs .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean  ## Remove the virtual environment too
	rm -rf .venv
