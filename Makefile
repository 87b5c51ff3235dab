# Everything a developer runs. `make` alone lists the targets.

PORT ?= 8000
HOST ?= 127.0.0.1
PYTHON ?= python3
ARGS ?=
# Named files run on one database, everything on both: make test ARGS=tests/api/test_tasks.py DB=postgres
DB ?= $(if $(ARGS),sqlite,both)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --require-hashes
RUNTIME := $(VENV)/.installed-runtime
DEVELOPMENT := $(VENV)/.installed-development
PACKAGES := backlog_site search_app resources_app
FAULTS := tests/faults tests/concurrency tests/resources_app/test_jobs_across_processes.py tests/search_app/test_rebuilding.py \
	$(addprefix tests/intelligencebank/test_,client.py faults.py killed.py limiting.py)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: $(RUNTIME) ## the whole site on http://127.0.0.1:8000 (PORT=, HOST=); Ctrl-C stops it
	@exec $(BIN)/python manage.py serve --host $(HOST) --port $(PORT)

.PHONY: install
install: $(DEVELOPMENT) ## the packages for development, into .venv

.PHONY: test
test: $(DEVELOPMENT) ## every test on SQLite and PostgreSQL (ARGS= goes to pytest; DB=sqlite, postgres or both)
	@$(if $(ARGS),,$(BIN)/python -m tests.faults.nginx)
	@exec $(BIN)/python -m tests.run --db $(DB) $(ARGS)

.PHONY: test-fast
test-fast: $(DEVELOPMENT) ## SQLite only, without the tests marked slow or process
	@exec $(BIN)/python -m tests.run --db sqlite -m "not slow and not process" $(ARGS)

.PHONY: test-browser
test-browser: $(DEVELOPMENT) ## the viewer in Debian's Chromium, which is installed if it can be
	@$(BIN)/python -m tests.browser.chromium
	@exec $(BIN)/python -m pytest tests/browser --capture=no $(ARGS)

.PHONY: lighthouse
lighthouse: $(DEVELOPMENT) ## Lighthouse's accessibility score of the viewer: 100 on every page (npm installs it once)
	@$(BIN)/python -m tests.browser.chromium
	@exec $(BIN)/python -m tests.browser.lighthouse

.PHONY: pictures
pictures: $(DEVELOPMENT) ## every page of the viewer for docs/images/viewer, from the demo (ARGS="board task" makes those alone)
	@$(BIN)/python -m tests.browser.chromium
	@exec $(BIN)/python -m tests.browser.pictures $(ARGS)

.PHONY: conformance
conformance: $(DEVELOPMENT) ## the official MCP conformance suite, both eras, on two web processes
	@exec $(BIN)/python -m tests.mcp.conformance.run

.PHONY: fuzz
fuzz: $(DEVELOPMENT) ## random requests (EXAMPLES=60000) and 100,000 addresses and operations, on both databases
	@FUZZ_CASES=$(or $(EXAMPLES),60000) $(BIN)/python -m tests.run --db both tests/fuzz $(ARGS)

.PHONY: mutants
mutants: $(DEVELOPMENT) ## plants bugs in a copy of the code; each must be caught by its suite
	@exec $(BIN)/python -m tests.security.mutants $(ARGS)

.PHONY: audit
audit: $(DEVELOPMENT) ## known holes in the pinned packages (asks pypi.org)
	@$(PYTHON) -m venv --clear .audit && .audit/bin/pip install --quiet pip-audit==2.10.1
	@.audit/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements.txt; status=$$?; rm -rf .audit; exit $$status

.PHONY: faults
faults: $(DEVELOPMENT) ## what breaks on purpose, and many at once: on SQLite and on PostgreSQL
	@$(BIN)/python -m tests.faults.nginx
	@FAULTS_FULL=1 $(BIN)/python -m tests.run --db both $(FAULTS) $(ARGS)

.PHONY: lint
lint: $(DEVELOPMENT) ## style, language, types, import rules, missing migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djade --check --target-version 5.2 $$(git ls-files '*.html')
	$(BIN)/python -m tests.language
	$(BIN)/mypy $(PACKAGES)
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

.PHONY: bench
bench: $(DEVELOPMENT) ## the benchmark table and its plots; with IR=dir only the quality of search on judged collections
	@exec $(BIN)/python -m $(if $(IR),bench.ir "$(IR)",bench) $(ARGS)

.PHONY: docs
docs: $(DEVELOPMENT) ## the generated pages, and all of docs/ as a site in site/
	$(BIN)/python manage.py generate_docs
	$(BIN)/python -m bench.docs
	$(BIN)/zensical build --config-file mkdocs.yml

.PHONY: clean
clean: ## remove what can be made again; the site's own state in var/ stays
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are newer than what was installed from: a second run installs nothing.
$(RUNTIME): requirements.txt $(BIN)/python
	@echo "Installing the packages of the site …"
	@$(PIP) --requirement $<
	@touch $@

$(DEVELOPMENT): tests/requirements.txt $(BIN)/python
	@echo "Installing the packages for development …"
	@$(PIP) --requirement $<
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	@echo "Creating $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
