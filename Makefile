# Everything a developer does here; `make` alone lists it.
# Needs make and Python 3.11 or newer with its venv module; Java comes with the locked packages.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The stamp names the folder it was made in: a copied or moved tree installs anew.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-long lint format docs bench lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## Create .venv with the locked packages (part of demo, test, lint and bench)

demo: setup ## Run the demo: a network monitor with 25 queries, about a minute
	@$(BIN)/freshet demo $(ARGS)

# Each process keeps a Spark of its own, so more than four would need much memory. tests/conftest.py says how many fit
# the cores, and in which order they take the files: by itself xdist begins last with the files of few tests, and those
# take longest. What failed is tried once more, by itself and in a new process: two tests, or a machine that is too busy,
# may have been in each other's way.
test: lint ## Lint, then run all tests but the long ones
	$(BIN)/pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS) || { \
	  echo 'Once more, one at a time, what failed:'; \
	  $(BIN)/pytest --last-failed --last-failed-no-failures none $(ARGS); }

test-long: setup ## Run only the tests marked long
	$(BIN)/pytest -m long $(ARGS)

lint: setup ## Check style, formatting, types and package layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## Format the code and apply safe fixes
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

docs: setup ## Build the pages as a site in build/site; test their links and run their code
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/pytest tests/docs $(ARGS)

BENCHES := crash overhead throughput backlog soak windows many
bench_crash_args := --kills 50
bench_soak_args := --minutes 10

bench: $(BENCHES:%=build/bench/%.json) ## Run the benchmarks (an hour or more), results in build/bench/*.json

.PHONY: $(BENCHES:%=build/bench/%.json)
# One at a time, even under make -j: they measure time on the same cores.
.NOTPARALLEL:
$(BENCHES:%=build/bench/%.json): build/bench/%.json: setup
	@mkdir -p build/bench
	$(BIN)/freshet bench $* $(bench_$*_args) --json > $@.part
	@mv $@.part $@

lock: ## Recompile requirements.lock after a change of dependencies (ARGS=--upgrade for newer versions)
	@command -v uv >/dev/null || test -x build/uv/bin/uv || \
	  { $(FIND_PYTHON); "$$python" -m venv build/uv && build/uv/bin/pip install --quiet uv; }
	PATH="$$PATH:build/uv/bin" uv pip compile --quiet --universal --python-version 3.11 --all-extras \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
	  --custom-compile-command 'make lock' $(ARGS) --output-file requirements.lock pyproject.toml

clean: ## Remove .venv, build results and caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Sets $python to an interpreter that is new enough, or stops.
define FIND_PYTHON
python=; for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
  if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
done; \
if [ -z "$$python" ]; then \
  echo "Freshet needs Python 3.11 or newer, and none was found; name one with: make PYTHON=/path/to/python3" >&2; exit 1; \
fi
endef

$(STAMP): pyproject.toml requirements.lock
	@rm -f $@
	@grep -qsF '$(CURDIR)/$(VENV)/' $(BIN)/pip && $(BIN)/python -c 'import pip' 2>/dev/null || { $(FIND_PYTHON); \
	  "$$python" -m venv --clear $(VENV) || { \
	  echo "Could not create $(VENV): is Python's venv module installed (on Debian, python3-venv)?" >&2; exit 1; }; }
	@echo "Installing the locked packages into $(VENV) (a few minutes the first time) ..."
	@{ $(BIN)/python -m pip install --require-hashes -r requirements.lock && \
	   $(BIN)/python -m pip install --no-deps --no-build-isolation -e . ; } \
	  > $(VENV)/setup.log 2>&1 || { cat $(VENV)/setup.log >&2; exit 1; }
	@printf '%s\n' '$(CURDIR)' > $@
