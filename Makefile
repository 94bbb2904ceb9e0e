# Requires Python 3.11 or newer with venv and pip, and make. Each target first creates the virtual
# environment .venv if it is missing or out of date.

PYTHON ?= python3
# Number of test processes
JOBS ?= 2
# Options of `make train`, `make train-smollm2` and of pytest, as in  make test ARGS="-x tests/sqlgym"
ARGS ?=
# Adapters for `make test-adapters`, as in  make test-adapters NAME="mcp ray" (default: all)
NAME ?=
GATED_ADAPTERS := mcp inspect_ai

BIN := .venv/bin
READY := .venv/.ready
# Tests start many processes; without bytecode files each of them would compile all modules anew.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup train train-smollm2 test test-integration test-nightly test-long test-adapters test-newest test-interpreters check docs docs-serve format dist clean distclean

help:  ## Print this list
	@awk -F ':.*  ## ' '/^[a-z0-9-]+:.*  ## / {printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## Create the virtual environment .venv with all dependencies

# PyTorch is installed first and by its exact version. As a dependency of another package, pip would
# install the newest build, which takes several GB.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "toolgym needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ". Select another one: make setup PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[train,dev,docs]"
	@touch $(READY)

train: $(READY)  ## Train the tiny model to use the SQL tools, and write a report
	$(BIN)/toolgym train sqlgym/Explore-v0 $(ARGS)

# If it is interrupted, the same command continues it. ARGS are options of a new run.
SMOLLM2 := runs/smollm2
train-smollm2: $(READY)  ## Train SmolLM2-135M to write SQL, about two hours on two cores
	$(BIN)/toolgym models get smollm2
	test -d $(SMOLLM2)-tasks || { rm -rf $(SMOLLM2)-invented \
	&& $(BIN)/toolgym tasks invent --out $(SMOLLM2)-invented --n 240 \
	&& $(BIN)/toolgym tasks synth $(SMOLLM2)-invented --out $(SMOLLM2)-tasks --n 16 --splits train=1 > /dev/null; }
	if test -f $(SMOLLM2)/config.json; then $(BIN)/toolgym train --resume $(SMOLLM2); \
	else $(BIN)/toolgym train --config examples/recipes/smollm2.yaml --out $(SMOLLM2) $(ARGS); fi

test: $(READY)  ## Run the fast tests, about two minutes on two cores
	$(PYTEST) $(ARGS)

# `.ci/run` and every pull request run these after `make test`.
test-integration: $(READY)  ## Test trainings, commands, hostile programs, the wheel and two adapters
	$(PYTEST) -m "integration and not nightly" $(ARGS)
	$(PYTHON) tools/adapter_tests.py --jobs $(JOBS) $(GATED_ADAPTERS)

# `make -k test-nightly` continues after a failure.
test-nightly: test-long test-adapters test-newest test-interpreters  ## Run long tests, all adapters and interpreters, newest TRL

# Keeps the order of the folders, in which long trainings come first; pytest-xdist would reorder them.
test-long: $(READY)
	$(PYTEST) --no-loadscope-reorder -m nightly --ignore=tests/test_growth.py $(ARGS)
	$(PYTEST) --dist load -m nightly tests/test_growth.py

# Needs no .venv: each adapter to another framework has its own environment in .venvs.
test-adapters:  ## Run the tests of the adapters to other frameworks; NAME=mcp for one
	$(PYTHON) tools/adapter_tests.py --jobs $(JOBS) $(NAME) -- -m ""

test-newest:
	$(PYTHON) -m venv --clear .venvs/newest
	.venvs/newest/bin/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	.venvs/newest/bin/python -m pip install --quiet --upgrade -e ".[train]" trl transformers pytest hypothesis
	.venvs/newest/bin/python -m pytest -q tests/adapters

test-interpreters: $(READY)
	$(BIN)/python tools/interpreters.py -n $(JOBS) --dist loadfile

check: $(READY)  ## Check lint, format, types, imports between packages, and workflow files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml

docs: $(READY)  ## Build the documentation site into build/site/html; fails on a broken link
	$(BIN)/python tools/make_site.py

docs-serve: $(READY)  ## Show the documentation site at http://localhost:8000, rebuilt after each change
	$(BIN)/python tools/make_site.py --serve

format: $(READY)  ## Format the code and apply ruff's automatic fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Needs no .venv: a release is built with the packages build and twine only.
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
