# `make demo` and `make test` need Python 3.11 or newer and make; everything else is set up here.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Real data for tests and benchmarks, where a mirror stands beside the project.
ifneq ($(wildcard ../shared/data),)
export EDGEWISE_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help setup demo test check format attack benchmarks tables clean

help:
	@echo "make demo        train EGNN(C) on Cora and write a report"
	@echo "make test        run the tests"
	@echo "make check       lint, types and tests"
	@echo "make format      format the code"
	@echo "make attack      damage 100,000 files, kill 200 commands, write benchmarks/results/attack.json"
	@echo "make benchmarks  run every benchmark and write benchmarks/results/*.json"
	@echo "make tables      write the tables of README and docs from the results, and stage both"
	@echo "make clean       remove the virtual environment and caches"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "edgewise needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: setup
	$(BIN)/edgewise demo

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist worksteal

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

attack: setup
	OMP_NUM_THREADS=1 $(BIN)/python tests/attack/campaign.py --cases 100000 --kills 200

benchmarks: setup
	$(BIN)/python benchmarks/epoch.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/batching.py
	$(BIN)/python benchmarks/tables.py

# A run may be adding results, so the tables are made from what is staged, not from the folder.
RUNS := benchmarks/results/*.jsonl
tables: setup
	git add $(RUNS)
	folder=$$(mktemp -d) && git ls-files '$(RUNS)' | git checkout-index --stdin --prefix=$$folder/ && \
	  $(BIN)/python benchmarks/tables.py --runs $$folder/benchmarks/results && rm -r $$folder
	git add README.md docs/reproduction.md benchmarks/results/networks.json

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
