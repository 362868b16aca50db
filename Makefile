# make demo: install everything and optimise a sample.   make test: the whole test suite.
# make soak: what takes hours.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKERS ?= 2
PINS := pyproject.toml constraints.txt
# Vision support of llama.cpp is not used and costs a third of its build time.
LLAMA_FLAGS := -DLLAVA_BUILD=OFF

.PHONY: demo test soak check lint types contracts install dev clean

demo: $(VENV)/.installed
	@$(BIN)/mtmc-tui samples/softmax.py --display plain --yes --steps 3 --export $(VENV)/demo
	@echo; echo "The optimised kernel, its test, its benchmark and a report: $(VENV)/demo"
	@echo "To run the test: make dev && cd $(VENV)/demo && ../bin/python -m pytest test_softmax.py"

# A file of tests stays in one process: its fixtures start processes of their own.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

# Hours: thousands of faulted programs, honest kernels under many seeds, simulated timings. The
# tables go to the terminal. MTMC_SOAK_SEEDS and MTMC_SOAK_PROGRAMS make it shorter or longer.
soak: $(VENV)/.dev
	$(BIN)/python -m pytest -m soak -s -q --timeout=0 tests/soak tests/faults tests/cases tests/coder $(ARGS)

check: lint types contracts test

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

install: $(VENV)/.installed

dev: $(VENV)/.dev

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "mtmc needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) cannot create virtual environments. On Debian or Ubuntu: apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.llama: $(VENV)/.python constraints.txt
	@for tool in cc c++; do command -v $$tool >/dev/null || \
	  { echo "llama.cpp is compiled here and $$tool is missing. On Debian or Ubuntu: apt-get install build-essential"; exit 2; }; done
	@echo "Installing llama-cpp-python: the first time it compiles llama.cpp, about 10 minutes on 2 cores."
	@CMAKE_ARGS="$(LLAMA_FLAGS)" $(PIP) install -q -c constraints.txt llama-cpp-python > $(VENV)/llama-build.log 2>&1 || \
	  { tail -n 30 $(VENV)/llama-build.log; \
	    grep -qiE 'cmake|ninja' $(VENV)/llama-build.log && hint="cmake ninja-build"; \
	    echo "llama-cpp-python did not build (log: $(VENV)/llama-build.log). On Debian or Ubuntu: apt-get install build-essential $$hint"; exit 2; }
	@touch $@

$(VENV)/.installed: $(VENV)/.llama $(PINS)
	@echo "Installing mtmc and what it needs (torch, triton, textual, a 93 MB language model)."
	$(PIP) install -q -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(PIP) install -q -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache
