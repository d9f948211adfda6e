# Recipes use relative paths only, so that the clone may lie in a folder with spaces or any letters in its name.
# Make itself ends with 2 when a recipe fails; the command's own exit code is in make's message ("Error 4").

PYTHON ?= python3
BIN := .venv/bin
CONFIG ?= configs/taxi.yaml
ARGS ?=
# Bytecode makes importing TFX three times faster; some machines switch it off.
unexport PYTHONDONTWRITEBYTECODE
# A folder on PYTHONPATH could own a package named like one of ours.
unexport PYTHONPATH
export TF_CPP_MIN_LOG_LEVEL ?= 3

.DEFAULT_GOAL := help
.PHONY: help env run test test-unit check lint lock bench clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

env: ## Set up .venv from requirements/lock.txt; does nothing when nothing changed.
	@"$(PYTHON)" -c 'import sys; sys.version_info >= (3, 8) or sys.exit("env: python3 is older than 3.8; name a newer one: make env PYTHON=python3.X")'
	@"$(PYTHON)" -m deploy.env

run: env ## Run the taxi pipeline (CONFIG=configs/other.yaml, ARGS="--set a.b=c").
	@$(BIN)/forebay run -c $(CONFIG) $(ARGS)

test: env ## Run every test: unit, integration, e2e (ARGS="-k name").
	@$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

test-unit: env ## Run the unit tests only.
	@$(BIN)/python -m pytest tests/unit $(ARGS)

lint: env ## Lint, format check, types, layers.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

check: lint test-unit ## What a commit has to pass: lint and the unit tests.

lock: env ## Resolve requirements/*.in again into requirements/lock.txt.
	@"$(PYTHON)" -m deploy.env.lock

bench: env ## Measure against TFX's own example and against our targets (minutes).
	@$(BIN)/python benchmarks/pipeline_vs_tfx.py $(ARGS)

clean: ## Remove caches and build leftovers; keeps .venv and var/.
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	@find . -name __pycache__ -not -path './.venv/*' -not -path './.tools/*' -prune -exec rm -rf {} +
