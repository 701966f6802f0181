# make setup       the environment in .venv/, from the pinned lock
# make lab         setup, a real model, and JupyterLab at the first chapter; LAB_ARGS="--port 9999" is passed on
# make test        every test; then those of configs and parity once more on the last transformers 4;
#                  JOBS=4 runs four at a time (default: 2), TEST_ARGS="tests/viz -x" is passed on to pytest
# make notebooks   rebuild the chapters from their source
# make redteam     try the grader's defences with hostile submissions
# make class       grade a simulated class of 1,000 (CLASS_ARGS="--students 100")
# make site        the course as static pages in site/; SITE_ARGS=--solutions adds the solved chapters, for instructors
# make anki        questions, exercises and answers as flash cards: build/minisgl-course.apkg
# make bench, make fuzz, make lint, make lock, make structure, make api, make doctor, make clean

.DEFAULT_GOAL := help
SHELL := /bin/bash

VENV := .venv
BIN := $(VENV)/bin
# Laid over the environment by PYTHONPATH: the last transformers 4, and what it needs in another version.
TRANSFORMERS4 := $(VENV)/transformers4
# An interpreter of your choice: make setup PYTHON=/usr/bin/python3.12
PYTHON ?=
# Test processes; the larger tests need about 2 GiB each. A file's tests share what is slow to start: JupyterLab, a class.
JOBS ?= 2
LAB_ARGS ?=
TEST_ARGS ?=
SITE_ARGS ?=
# What depends on how transformers reads a config and computes a model.
TRANSFORMERS4_TESTS = $(wildcard tests/configs tests/engine/test_hf_config.py tests/engine/test_parity.py tests/engine/test_parity_rope.py) \
  $(addsuffix ::test_the_tokenizer_gives_the_text_back_and_adds_nothing,$(wildcard tests/engine/test_parity_smollm2.py))
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --durations=15 --durations-min=1
# Those that need no GPU.
BENCHMARKS = $(wildcard benchmarks/load.py benchmarks/grade.py)
# JupyterLab's own question about news would stand before the first chapter.
LAB_SETTINGS = $(VENV)/share/jupyter/lab/settings/overrides.json
FIRST_CHAPTER = $(firstword $(sort $(wildcard notebooks/*/*.ipynb)))

# One thread a process: several test processes share the cores.
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK ?= 1

.PHONY: help setup setup-transformers4 system-packages test-packages lab test test-transformers4 notebooks anki class redteam site bench fuzz lint lock structure api doctor clean

help:
	@sed -n '/^$$/q; s/^# //p' Makefile

setup: system-packages $(VENV)/.setup-done

setup-transformers4: setup $(TRANSFORMERS4)/.setup-done

system-packages:
	@scripts/system_packages.sh

test-packages:
	@scripts/system_packages.sh test

# A setup that broke off leaves no stamp, so the next `make setup` goes on where it stopped.
$(VENV)/.setup-done: requirements.lock pyproject.toml setup.py
	@set -eu; python=$$(scripts/find_python.sh $(PYTHON)); \
	$(BIN)/python -c '' 2>/dev/null || { echo "Making $(VENV)/ with $$python"; "$$python" -m venv --clear $(VENV); }; \
	echo "Installing $$(grep -c == $<) pinned packages into $(VENV)/ (one to two GB, some minutes on a first run)"; \
	quiet=-qq; [ ! -t 1 ] || quiet=; \
	$(BIN)/python -m pip install $$quiet --requirement $<; \
	$(BIN)/python -m pip install $$quiet --no-deps --no-build-isolation --editable .; \
	touch $@; echo "$(VENV)/ is ready"

$(TRANSFORMERS4)/.setup-done: requirements-transformers4.lock | $(VENV)/.setup-done
	@rm -rf $(@D)
	@$(BIN)/python -m pip install -qq --no-deps --target $(@D) --requirement $<
	@touch $@

$(LAB_SETTINGS): scripts/lab_settings.json | setup
	@mkdir -p $(@D) && cp $< $@

lab: setup $(LAB_SETTINGS)
	@$(BIN)/python -m minisgl fetch || { \
	  echo "WARNING: the course's small model could not be fetched (see above). Chapters work without it;"; \
	  echo "         cells that let a real model talk will say so. Try again later: $(BIN)/python -m minisgl fetch"; } >&2
	@echo "JupyterLab prints its address below; with no browser here, open that address yourself. Ctrl-C stops it."
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) \
	  $(if $(FIRST_CHAPTER),--LabApp.default_url=/lab/tree/$(FIRST_CHAPTER)) $(LAB_ARGS)

test: test-packages setup
	$(PYTEST) $(TEST_ARGS)
	@$(MAKE) --no-print-directory test-transformers4

test-transformers4: setup-transformers4
	@if [ -n "$(strip $(TRANSFORMERS4_TESTS))" ]; then \
	  PYTHONPATH=$(TRANSFORMERS4) $(PYTEST) $(TRANSFORMERS4_TESTS); fi

notebooks: setup
	$(BIN)/python -m autograder build

# A simulated class of 1,000, with its marks checked: a quarter of an hour on two cores.
class: setup
	$(BIN)/python -m benchmarks.big_class $(CLASS_ARGS)

redteam: setup
	$(BIN)/python -m autograder redteam

anki: setup
	$(BIN)/python -m autograder anki

bench: setup
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python "$$script"; done

fuzz: setup
	$(BIN)/python -m pytest tests/fuzz --timeout 3600 --fuzz-examples 10000

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy

# Plain Python, so that the page can be written before anything is installed.
structure:
	python3 scripts/structure.py

site: setup
	$(BIN)/python scripts/site.py $(SITE_ARGS)

api: setup
	$(BIN)/python scripts/api.py

lock:
	$(BIN)/python scripts/lock.py

doctor: setup
	$(BIN)/python -m autograder doctor

clean:
	rm -rf $(VENV) build dist site *.egg-info
