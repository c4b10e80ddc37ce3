# `make demo` and `make test` set up all they need: a virtual environment in .venv, the package, the JARs.
PYTHON ?= python3
VENV ?= .venv
PAIMON ?= .venv-paimon
DUCKLAKE ?= .venv-ducklake
PYPAIMON ?= .venv-pypaimon
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
TESTS ?=
SHORT := not full and
WAREHOUSE ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full test-spark test-rest test-local test-some test-paimon test-ducklake world coverage lint docs site site-look bench bench-quick lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready ## virtual environment with the locked versions

$(VENV)/.ready: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $@

demo: setup ## the flights of 2013 through three formats, without Java, then with Spark; WAREHOUSE=s3://bucket/path for tables there
	$(BIN)/trinity demo --engine local --output demo-output/local $(if $(WAREHOUSE),--warehouse '$(WAREHOUSE)/local')
	@if command -v java >/dev/null || [ -n "$$JAVA_HOME" ]; then \
	  $(BIN)/trinity demo $(if $(WAREHOUSE),--warehouse '$(WAREHOUSE)'); \
	else echo "There is no Java: Spark's part of the demo is left out."; fi

test: setup ## what every change must pass, 15 to 20 minutes on 2 cores
	$(MAKE) --no-print-directory --jobs 3 lint $(if $(TESTS),test-some,test-spark test-rest test-local)

test-full: setup ## everything, for hours; TESTS=paths for some of it
	$(MAKE) --no-print-directory --jobs 3 SHORT= lint $(if $(TESTS),test-some,test-spark test-rest test-local)

# Spark leaves half a core idle: what does not need it runs beside it
test-spark: setup
	$(PYTEST) -m "$(SHORT) spark" --durations=30

test-rest: setup
	$(PYTEST) -m "$(SHORT) not spark" --ignore=tests/local --durations=15

# pyspark cannot be imported there, and the Java on PATH is none
test-local: setup ## what this process does alone, where there is neither Spark nor Java
	env -u JAVA_HOME -u SPARK_HOME PYTHONPATH=tests/nowhere PATH="$(CURDIR)/tests/nowhere/bin:$$PATH" \
	  $(PYTEST) -m "$(SHORT) not spark" tests/local

test-some: setup
	$(PYTEST) $(if $(SHORT),-m "not full") $(TESTS)

# to count lines doubles what Python takes, so make test does not
coverage: setup ## make test once more, and the lines and branches that it has not met, the modules with most of them last
	$(BIN)/python -m coverage erase
	$(MAKE) --no-print-directory --jobs 2 PYTEST='$(BIN)/python -m coverage run -m pytest' test-spark test-rest test-local
	$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report | tail -n 30

test-paimon: setup $(PAIMON)/.ready ## histories on real Apache Paimon 0.9.0, in an environment of its own
	PAIMON_PYTHON=$(abspath $(PAIMON))/bin/python $(PYTEST) tests/paimon/witness.py

$(PAIMON)/.ready: tests/paimon/requirements.txt
	$(PYTHON) -m venv $(PAIMON)
	$(PAIMON)/bin/pip install --quiet --requirement tests/paimon/requirements.txt
	touch $@

test-ducklake: setup $(DUCKLAKE)/.ready ## DuckDB's own DuckLake extension reads DuckLake tables, in an environment of its own
	DUCKLAKE_PYTHON=$(abspath $(DUCKLAKE))/bin/python $(PYTEST) tests/ducklake/witness.py

$(DUCKLAKE)/.ready: tests/ducklake/requirements.txt
	$(PYTHON) -m venv $(DUCKLAKE)
	$(DUCKLAKE)/bin/pip install --quiet --requirement tests/ducklake/requirements.txt
	touch $@

world: setup $(PAIMON)/.ready $(PYPAIMON)/.ready ## asks other systems which rules they keep, for docs/conformance.md
	PAIMON_PYTHON=$(abspath $(PAIMON))/bin/python PYPAIMON_PYTHON=$(abspath $(PYPAIMON))/bin/python $(BIN)/python -m tests.world
	$(BIN)/python -m docs.matrix

$(PYPAIMON)/.ready: tests/world/requirements.txt
	$(PYTHON) -m venv $(PYPAIMON)
	$(PYPAIMON)/bin/pip install --quiet --requirement tests/world/requirements.txt
	touch $@

lint: setup ## ruff, typos and mypy
	$(BIN)/typos
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup ## docs/api, out of the docstrings, and docs/reference, out of the program
	$(BIN)/python -m docs.reference

site: setup ## the documentation's site of this release, in build/site/<release>, beside those of others
	$(BIN)/python -m docs.site

site-look: site ## pictures of its pages in build/site-look, by Chromium: wide and narrow, light and dark
	$(BIN)/python -m docs.site_look

bench: setup $(PAIMON)/.ready ## every figure of docs/performance.md, beside all peers: hours
	PAIMON_PYTHON=$(abspath $(PAIMON))/bin/python $(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.local
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.buckets
	$(BIN)/python -m benchmarks.page

bench-quick: setup ## the same cases with few rows, whose figures say nothing
	$(BIN)/python -m benchmarks --quick --results build/bench --name quick
	$(BIN)/python -m benchmarks.local --quick --results build/bench --name quick_local

lock: ## the newest versions within the ranges of pyproject.toml
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --all-extras --group dev \
	  --no-emit-package trinity-merge --output-file requirements.lock pyproject.toml

clean: ## remove the environment and what builds left
	rm -rf .coverage* $(VENV) $(PAIMON) $(DUCKLAKE) $(PYPAIMON) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
