# A fresh machine needs Python 3.11 or newer, git and make; every target below makes its own environment.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: install demo test format bench-step bench-kmeans bench-methods bench-folders clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/.peers: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,peers]'
	touch $@

demo: $(STAMP)
	$(BIN)/propos run digits

test: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-step: $(VENV)/.peers
	$(BIN)/python benchmarks/step.py

bench-kmeans: $(VENV)/.peers
	$(BIN)/python benchmarks/kmeans.py

bench-methods: $(STAMP)
	$(BIN)/python benchmarks/methods.py

bench-folders: $(STAMP)
	$(BIN)/python benchmarks/folders.py

clean:
	rm -rf $(VENV) runs build dist
