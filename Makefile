# Every target sets up .venv when it has to, so each works on a fresh clone.

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-installed
# With EXTRAS=dev,calibrate (PyTorch) the tests that measure run too, and with frameworks those of
# launch files that have the parser of a framework read them; else they skip and say so.
EXTRAS ?= dev
comma := ,
DEV := $(VENV)/.$(subst $(comma),-,$(EXTRAS))-installed
PIP_INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -c constraints.txt

PACKAGES := simulator calibrate hardware_profiles planner reports traincast
SCENARIO ?= examples/gpt3-175b-1024-a100.toml
PYTEST_ARGS ?= -n 2

.DEFAULT_GOAL := help
.PHONY: plan test check bench docs setup frameworks clean help format lint types contracts docs-check

plan: $(RUNTIME)  ## forecast and plan the example run (SCENARIO=file.toml for another)
	@$(BIN)/traincast plan $(SCENARIO)

test: $(DEV)  ## run the tests
	@$(BIN)/python -m pytest --doctest-modules tests $(PACKAGES) -m 'not alone' $(PYTEST_ARGS)
	@$(BIN)/python -m pytest tests/emulation -m alone -n 0

check: format lint types contracts docs-check test  ## everything that CI checks

format: $(DEV)
	@$(BIN)/ruff format --check .

lint: $(DEV)
	@$(BIN)/ruff check .

types: $(DEV)
	@$(BIN)/mypy $(PACKAGES)

contracts: $(DEV)
	@$(BIN)/lint-imports

docs-check: $(DEV)
	@$(BIN)/python -m traincast.docs --check

docs: $(DEV)  ## regenerate the reference pages
	@$(BIN)/python -m traincast.docs

bench: $(DEV)  ## run the benchmarks
	@$(BIN)/python -m pytest benchmarks --benchmark-only

setup: $(DEV)  ## create .venv with everything needed to develop

frameworks:  ## add the parsers of torchtitan, transformers and Hydra, for the tests that use them
	@$(MAKE) --no-print-directory setup EXTRAS=dev,calibrate,frameworks

clean:  ## remove .venv, caches and build outputs
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## list the targets
	@awk -F ':.*##' '/^[a-z-]+:.*##/ {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	    if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        exec $$candidate -m venv $(VENV); \
	    fi; \
	done; \
	echo 'error: no Python >= 3.11 with the venv module was found.' >&2; \
	echo 'Install one (Debian, Ubuntu: apt-get install python3-venv) or name it: make PYTHON=/path/to/python3.11' >&2; \
	exit 1

$(RUNTIME): pyproject.toml constraints.txt | $(BIN)/python
	@echo 'Installing into $(VENV) (once; about a minute) ...' >&2
	@$(PIP_INSTALL) -e .
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	@echo 'Installing into $(VENV) (once; about a minute) ...' >&2
	@$(PIP_INSTALL) -e '.[$(EXTRAS)]'
	@$(if $(findstring frameworks,$(EXTRAS)),$(PIP_INSTALL) --no-deps torchtitan)
	@touch $(RUNTIME) $@
