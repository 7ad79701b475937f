# Every target sets up what it needs; a second run does no work twice.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
WORKERS ?= 2

.PHONY: demo test fast check golden bench fmt docs clean

demo: $(READY)           ## a first query: text, plan, answer
	$(BIN)/python examples/first_query.py

test: $(READY)           ## every test
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal

fast: $(READY)           ## tests without a JVM, few examples of each law; a minute
	HYPOTHESIS_PROFILE=fast $(BIN)/pytest -q -n $(WORKERS) --dist worksteal

check: $(READY)          ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

golden: $(READY)         ## rewrite expected outputs; read the diff
	$(BIN)/pytest -q -n $(WORKERS) --rewrite-golden

bench: $(READY)          ## tables of ratios; ten minutes
	$(BIN)/python benchmarks/local_engine.py

fmt: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)           ## run every example of the docs
	$(BIN)/pytest -q tests/test_docs.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
