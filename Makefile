# The first Python on PATH that is new enough; by its own path, as the shims of version managers are slow.
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11) or print(sys.executable))' 2>/dev/null && break; done)
SETUP = $(if $(PYTHON),,$(error Python 3.11 or later is needed, and none of python3, python3.11 ... python3.14 \
	on PATH is that. Install one (python.org/downloads, or `apt-get install python3`), then try again))'$(subst ','\'',$(PYTHON))' -m tools.setup
# Runs the rest of a recipe's line in the environment that `make env` prints.
IN_ENV = exports=$$($(SETUP) env) && eval "$$exports" &&
# The stack `local` is encrypted with the empty passphrase, as its file says, on every state backend.
LOCAL_PULUMI = PULUMI_CONFIG_PASSPHRASE= pulumi
SELECT_LOCAL = $(LOCAL_PULUMI) stack select --create --secrets-provider passphrase local

.DEFAULT_GOAL := help
.PHONY: help setup env up preview destroy template test test-all lint bench lock types venv

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '  make %-9s %s\n' "$$target" "$$text"; done

setup:  ## find or install Python packages, Pulumi, Docker and the base image
	@$(SETUP)

env:  ## the shell environment: eval "$(make -s env)"
	@$(SETUP) env || { echo false; exit 1; }

up: setup  ## train on this machine: `pulumi up` on the stack `local`
	@$(IN_ENV) $(SELECT_LOCAL) && $(LOCAL_PULUMI) up --yes

preview:  ## what `make up` would do
	@$(IN_ENV) $(SELECT_LOCAL) && $(LOCAL_PULUMI) preview

destroy: setup  ## remove all that `make up` made
	@$(IN_ENV) $(LOCAL_PULUMI) destroy --stack local --yes

template:  ## the template with a wheel of this checkout beside it, for: pulumi new "$(make -s template)"
	@$(SETUP) python >&2
	@.venv/bin/python -m tools.template

# What one of a thousand processes of the tests has compiled serves the others, also where the environment says not to.
test: SELECTED = -m "not large"
test-all: SDKS = sdks
test:  ## run all tests but those that compile or install for minutes
test-all:  ## run all tests
test test-all:
	@PYTHONDONTWRITEBYTECODE= $(SETUP) python dev commands pulumi docker image test $(SDKS)
	@$(IN_ENV) PYTHONDONTWRITEBYTECODE= python -m pytest $(SELECTED) \
		--numprocesses=auto --dist=loadfile --no-loadscope-reorder

lint: venv  ## check style, format and types
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy

bench: venv setup  ## measure against other tools
	@$(IN_ENV) python -m benchmarks

lock: venv  ## pin what pyproject.toml requires in the lock files, keeping the versions that still fit
	@.venv/bin/python -m tools.lock

types: venv  ## generate vertex_api/types.py, the JSON Schemas for editors, and the pages of reference
	@.venv/bin/python -m tools.discovery
	@.venv/bin/python -m tools.schemas
	@.venv/bin/python -m tools.reference
	@.venv/bin/python -m tools.rules

venv:
	@$(SETUP) python dev
