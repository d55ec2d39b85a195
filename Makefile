.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin

# uv installs in seconds what takes pip a minute.
ifeq ($(shell command -v uv),)
INSTALL_TIME = about a minute
VENV = $(PYTHON) -m venv .venv
PIP = $(BIN)/python -m pip --disable-pip-version-check
else
INSTALL_TIME = some seconds with uv
VENV = uv venv --seed --allow-existing --python $(PYTHON) .venv
PIP = VIRTUAL_ENV=.venv uv pip
endif

.PHONY: help setup setup-node setup-agui vendor page serve demo test test-all conversations check bench fuzz hands docs screenshots office lock clean

TSC := node_modules/.bin/tsc

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/.done  ## make .venv with the server, the checks and the tests, all pinned

.venv/.done: pyproject.toml requirements-dev.txt
	@$(call announce,the server with its checks and tests,requirements-dev.txt)
	$(call install,requirements-dev.txt)
	@touch $@

# An environment with the checks and tests has the server, too. What an agent's own tests need comes with the server.
SERVER := $(if $(wildcard .venv/.done),.venv/.done,.venv/.server)

.venv/.server: pyproject.toml requirements.txt
	@$(call announce,the server,requirements.txt)
	$(call install,requirements.txt)
	@touch $@

announce = echo "Installing $(1) into .venv: up to $$(grep -c '==' $(2)) packages, $(INSTALL_TIME). Only the first time."

# What is pinned is installed with its hashes, which a folder has none of: the project itself follows alone. The pins are
# constraints, too: a pip before 23.3 takes the newest release of what is asked for with an extra, and refuses its hash.
define install
	@$(PYTHON) -c 'import sys; sys.exit("a2a-canvas needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(VENV)
	$(PIP) install --quiet --require-hashes -r $(1) -c $(1)
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
endef

setup-node:  ## what checks and tests of the page and of streams need (node and npm must be there)
	npm ci
	cd tests/server/protocols/agui && npm ci
	cd tests/server/protocols/artifacts/durable_streams && npm ci
	cd tests/server/protocols/mcp_server/hosts && npm ci

# It needs another line of ag-ui-protocol than ours, so it cannot be a dependency.
setup-agui:  ## an agent of agent-framework, in an environment of its own, for the tests of the loop over AG-UI
	$(PYTHON) -m venv build/agui-agents/agent_framework
	build/agui-agents/agent_framework/bin/pip install --quiet agent-framework-ag-ui==1.7.0 uvicorn

vendor:  ## bundle the libraries of the page into server/canvas/vendor (after make setup-node)
	node vendor.mjs server/canvas/vendor

page:  ## bundle the page into server/canvas/built: after each change in server/canvas (after make setup-node)
	node page.mjs server/canvas/built

serve: $(SERVER)  ## start the server on 127.0.0.1:8000 (ARGS="--port 9000")
	$(BIN)/a2a-canvas serve $(ARGS)

demo: $(SERVER)  ## a minute with two clients, a growing document and kill -9 (ARGS="--speed 3")
	$(BIN)/a2a-canvas demo $(ARGS)

# Without bytecode each of pytest's processes compiles all tests every time, which takes longer than to collect them.
KEEP_BYTECODE := PYTHONDONTWRITEBYTECODE=

# Many of the quick tests wait more than they compute: with twice as many processes as processors none is idle.
QUICK_PROCESSES = $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))

test: setup  ## the quick tests, in a few minutes on two cores (ARGS="-k journal")
	$(KEEP_BYTECODE) $(BIN)/python -m pytest --quick -n $(QUICK_PROCESSES) --dist worksteal $(ARGS)

# Pytest's processes often wait for servers and browsers, which leave a fifth of the processors idle.
ALL_PROCESSES = $(shell expr 3 '*' $$(getconf _NPROCESSORS_ONLN) / 2)

test-all: setup  ## every test with every example, as in CI
	$(KEEP_BYTECODE) $(BIN)/python -m pytest -n $(ALL_PROCESSES) --dist worksteal $(ARGS)

conversations: setup  ## 2,000 model calls against a strict Messages API (CALLS=20000)
	MODEL_CALLS=$(or $(CALLS),2000) $(BIN)/python -m pytest tests/server/agent/turn/test_conversations.py -q -s

check: setup  ## format, lint, types (of Python, and of the page after make setup-node), import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if [ -x $(TSC) ]; then echo $(TSC); $(TSC); \
	elif [ -n "$$TESTS_NEED_NODE" ]; then echo "$(TSC) is missing, and TESTS_NEED_NODE is set"; exit 1; \
	else echo "The types of the page are not checked: make setup-node installs what it needs."; fi

bench: setup  ## benchmarks; they print ratios
	$(BIN)/python -m bench $(ARGS)

fuzz: setup  ## hostile requests against a real server (ARGS="--requests 2000 --database memory --seed 1")
	$(BIN)/python -m bench.fuzz $(ARGS)

office: setup  ## open a Word file with suggestions and comments in LibreOffice (Debian: libreoffice-writer must be there)
	TESTS_NEED_OFFICE=1 $(BIN)/python -m pytest tests/server/protocols/artifacts/documents/test_word_file.py $(ARGS)

hands: setup  ## people and agents on one document while servers are killed (ARGS="--seconds 60 --people 5 --database postgresql --seed 1")
	$(BIN)/python -m bench.hands $(ARGS)

docs: setup  ## write the generated tables of docs/settings.md, docs/observability.md, docs/limits.md and docs/scaling.md
	$(BIN)/python -m tests.docs.settings_table
	$(BIN)/python -m tests.docs.metrics_table
	$(BIN)/python -m tests.docs.limits_table
	$(BIN)/python -m tests.docs.scaling_table

screenshots: setup  ## take the pictures of the page in docs/screenshots (Chromium must be there; ARGS="empty dark")
	$(BIN)/python -m tests.docs.screenshots $(ARGS)

COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" $(ARGS) pyproject.toml

lock:  ## pin what pyproject.toml needs, for all platforms, with hashes (uv must be there; ARGS=--upgrade takes the newest)
	$(COMPILE) --extra dev --output-file requirements-dev.txt
	$(COMPILE) --extra acp --extra mcp --extra openai --extra test --constraints requirements-dev.txt --output-file requirements.txt

clean:  ## remove everything that was made
	rm -rf .venv node_modules tests/server/protocols/agui/node_modules build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
