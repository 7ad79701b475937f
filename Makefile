# Every target sets up what it needs; a second run does no work twice.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
WORKERS ?= 2

.PHONY: demo test fast check golden bench bench-full peers soak fmt docs java clean

demo: $(READY) java      ## five queries on Spark over a generated auction site, checked
	$(BIN)/python -m tidemill demo --engine spark

test: $(READY) java      ## every test; those on Spark after the others, a Spark for each worker
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "not spark and not soak"
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "spark and not soak"

fast: $(READY)           ## tests without a JVM, few examples of each law; a minute
	HYPOTHESIS_PROFILE=fast $(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "not spark and not soak"

check: $(READY)          ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

golden: $(READY)         ## rewrite expected outputs; read the diff
	$(BIN)/pytest -q -n $(WORKERS) -m "not spark" --rewrite-golden

bench: $(READY) java     ## tables of ratios
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.linear_road.check

bench-full: $(READY) java  ## the same with more of everything
	$(BIN)/python -m benchmarks.run --full

peers: $(READY) java     ## other systems to compare with, each in an environment of its own
	$(BIN)/python -m benchmarks.peers.install

soak: $(READY) java      ## long kills, stories and mutants, a cluster, laws with many examples
	TIDEMILL_KILLS=20 $(BIN)/pytest -q tests/spark/test_kill.py tests/running/test_local_kill.py
	$(BIN)/pytest -q -m soak
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal --more tests/laws -m "not soak"

fmt: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)           ## run every example of the docs; check links, index, map and picture
	$(BIN)/pytest -q tests/test_docs.py tests/test_pages.py tests/test_pictures.py tests/test_reference_page.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

java:                    # Spark runs on Java 17 or newer
	@java -version >/dev/null 2>&1 || $(MAKE) --no-print-directory install-java

install-java:
	@command -v apt-get >/dev/null || { echo "Spark needs Java 17 or newer: install it first"; exit 1; }
	apt-get update -qq && apt-get install -qq -y openjdk-17-jre-headless

clean:
	rm -rf $(VENV) .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis
