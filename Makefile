# Two commands matter: `make run` and `make test`. Both make .venv and install what they need, once per pyproject and constraints.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEV    := $(VENV)/.installed-dev
COVER  ?= --cov --cov-report=
PYTEST_OPTIONS = -n 2 --dist loadfile --no-loadscope-reorder
MINUTES ?= 10
PARTS   ?= many_machines published_models

.PHONY: run test tests test-all test-extras quick lint docs bench fuzz tables chromium wheel wheel-open release-check install clean

run: $(STAMP)  ## install, then show what saccade does: tour/report.html
	$(BIN)/saccade tour --quick --out tour

test: lint tests  ## lint, types, all tests but those marked long (without ImageNet weights some are skipped) and coverage (COVER= for none)

tests: $(DEV)  ## the same without lint and types
	-$(BIN)/saccade data get mobilenetv2-imagenet --quiet
	-$(BIN)/saccade data get efficientnet-lite0-imagenet --quiet
	COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")') \
	  $(BIN)/pytest $(PYTEST_OPTIONS) $(COVER)
	$(if $(COVER),@$(BIN)/coverage report | awk 'NR <= 12 || /^TOTAL/')

test-all: $(DEV)  ## with the tests that are marked long: exports and graphs of every model, compiled steps, processes
	$(BIN)/pytest $(PYTEST_OPTIONS) --all

test-extras: $(DEV)  ## what needs timm, transformers or ray, in environments of their own; says why where they cannot be had (PARTS=many_machines for one)
	tools/test_extras.sh $(PARTS)

quick: $(DEV)  ## the tests that take seconds
	$(BIN)/pytest $(PYTEST_OPTIONS) -m "not slow"

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples/typed_user.py

docs: $(DEV)  ## the site, into build/site: warnings are errors, nothing is fetched
	$(BIN)/sphinx-build -E -W --keep-going -n -q -d build/site-cache docs build/site

bench: $(DEV)  ## speed and memory, measured side by side (times are those of this machine, ratios carry over)
	for each in benchmarks/bench_*.py; do echo "== $$each"; $(BIN)/python $$each || exit 1; done

fuzz: $(DEV)  ## hostile inputs of every kind for MINUTES: no traceback, deadlines and a memory bound held
	$(BIN)/python tools/fuzz.py --minutes $(MINUTES)

tables: $(DEV)  ## write the tables of README and docs anew from results
	$(BIN)/python tools/tables.py

chromium: $(DEV)  ## where a browser for the tests of the page is; brings one into .venv where there is none
	@$(BIN)/python tools/chromium.py --get

wheel: $(DEV)  ## the package, into dist
	$(BIN)/python -m hatchling build -t wheel -d dist

wheel-open: wheel  ## the same without weights whose training data is for research only (NOTICE)
	$(BIN)/python tools/release.py open dist/saccade_attention-$$($(BIN)/python -c 'import saccade; print(saccade.__version__)')-py3-none-any.whl --out dist

release-check: $(DEV)  ## is this tree ready for a release? builds the packages and tries them
	$(BIN)/python tools/release.py check

install: $(STAMP)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[web]'
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@ $(STAMP)

clean:
	rm -rf $(VENV) .venv-extras .venv-ray .coverage tour build dist .pytest_cache .mypy_cache .ruff_cache
