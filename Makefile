# A fresh machine needs Python 3.11 or newer, git and make; every target below makes its own environment.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PAGE   := $(VENV)/.page
# Says nothing unless something is wrong: twice quiet leaves errors and what a failed build said.
PIP    := -m pip install --quiet --quiet --disable-pip-version-check
INSTALL := $(BIN)/python $(PIP) --constraint constraints.txt
# Programs that tests start find their modules compiled, whatever the surroundings say.
export PYTHONDONTWRITEBYTECODE :=
# A process of tests for every core; a file's tests stay together, for the sake of what they share.
TESTS  := $(BIN)/pytest --numprocesses=auto --dist=loadscope --no-loadscope-reorder

.PHONY: install demo test lint-python lint-page test-rest test-all check test-lowest test-gpu attack format docs release clean
.PHONY: bench-step bench-kmeans bench-methods bench-scaling bench-folders bench-stores bench-report bench-review bench-studio bench-suggest bench-reading bench-scores bench-threads bench-pretrained bench-frozen bench-uneven bench-corrections bench-defaults bench-strong-views bench-continued bench-neighbours bench-mirrored bench-scale

install: $(PAGE)

$(STAMP): pyproject.toml constraints.txt
	@echo "Installing into $(VENV): a few minutes, once"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(INSTALL) --editable '.[dev,pretrained]'
	@touch $@ $(PAGE)

# The page is part of the package: a change in web/ builds it again.
$(PAGE): $(STAMP) hatch_build.py $(shell git ls-files web 2>/dev/null)
	@$(INSTALL) --no-deps --editable .
	@touch $@

$(VENV)/.peers: $(STAMP)
	@$(INSTALL) --editable '.[dev,pretrained,peers]'
	@touch $@

$(VENV)/.docs: $(STAMP)
	@$(INSTALL) --editable '.[dev,docs,pretrained]'
	@touch $@

demo: $(PAGE)
	@$(BIN)/propos run digits
	@echo "propos is at $(BIN)/propos: $(BIN)/propos run FOLDER clusters your own images; . $(BIN)/activate puts it on the path."

# What a contributor needs to trust a change: about nine minutes on two idle cores.
test: $(PAGE)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint-python lint-page
	.ci/chromium
	$(TESTS) -m "not full"

lint-python: $(PAGE)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

lint-page: $(PAGE)
	.ci/check-web

# What `make test` leaves out: the other methods through the same checks, the documentation's commands, the notebook, the
# site, the installed wheel, all variants.
test-rest: $(PAGE)
	.ci/chromium
	@$(MAKE) --silent $(VENV)/.docs || echo "the extra docs could not be installed: the site's tests will be skipped"
	$(TESTS) -m full

test-all: test test-rest

# Format, lint, types, contracts and the unit tests of the rooms that changed since the last commit: under a minute.
check: $(STAMP)
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix .
	@$(BIN)/mypy && $(BIN)/lint-imports --no-logo > /dev/null
	@$(BIN)/python .ci/changed.py | xargs --no-run-if-empty $(BIN)/pytest --quiet --numprocesses=auto -m "not full"

# A thousand damaged inputs and clumsy commands; about a quarter of an hour on two cores.
attack: $(PAGE)
	$(BIN)/python attacks/attack.py
	$(BIN)/python attacks/interrupts.py

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The quick tests with the lowest version of every dependency that pyproject.toml allows, in an environment of their own.
test-lowest: $(PAGE)
	@$(PYTHON) -m venv --clear $(VENV)-lowest
	@$(VENV)-lowest/bin/python $(PIP) --constraint constraints-lowest.txt --editable . hypothesis pytest pytest-xdist
	$(VENV)-lowest/bin/pytest --numprocesses=auto --dist=loadscope tests/unit tests/integration/test_commands.py

# The `===` refuses builds of the same version for a CPU.
$(VENV)-gpu/.installed: pyproject.toml constraints.txt
	@echo "Installing into $(VENV)-gpu: torch for CUDA, 5 GB, once"
	@$(PYTHON) -m venv --clear $(VENV)-gpu
	@sed 's/^torch==/torch===/' constraints.txt > $(VENV)-gpu/constraints.txt
	@$(VENV)-gpu/bin/python $(PIP) --constraint $(VENV)-gpu/constraints.txt --editable '.[pretrained]' hypothesis pytest pytest-xdist
	@touch $@

# Every command and every method's step on a stand-in GPU, with torch's build for CUDA; then the self-test of the real GPU, if
# there is one.
test-gpu: $(VENV)-gpu/.installed
	$(VENV)-gpu/bin/pytest --numprocesses=auto --dist=loadscope tests/gpu
	@if $(VENV)-gpu/bin/python -c "import torch; raise SystemExit(not torch.cuda.is_available())"; \
	then $(VENV)-gpu/bin/propos doctor --gpu; else echo "no GPU on this machine: its self-test was not run"; fi

# The check-list of a release: versions, changelog and git first, which takes a second; then everything is tested, and the
# archives are built and tried.
release: $(PAGE)
	$(BIN)/python .ci/release.py .
	$(MAKE) test-all
	rm -rf dist
	$(BIN)/python -m hatchling build --target sdist --target wheel --directory dist
	PROPOS_DIST=dist $(BIN)/pytest --quiet tests/browser/test_installed.py
	$(BIN)/python .ci/release.py . dist
	@echo "Ready: git tag v$$($(BIN)/propos --version | cut -d' ' -f2), push the tag, and upload dist/"

# The documentation as a site with a live demo, in site/: open site/index.html. The demo trains for a minute or two.
docs: $(VENV)/.docs $(PAGE)
	@$(BIN)/python docs/reference.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@$(BIN)/python docs/demo.py site
	@echo "The documentation is at site/index.html"

bench-step: $(VENV)/.peers
	$(BIN)/python benchmarks/step.py

bench-kmeans: $(VENV)/.peers
	$(BIN)/python benchmarks/kmeans.py

# Defaults compared with other methods on every set; hours on two cores, and it resumes.
bench-defaults: $(VENV)/.peers
	$(BIN)/python benchmarks/defaults.py

# With and without flipped views, seed by seed; hours on two cores, and it resumes.
bench-mirrored: $(STAMP)
	$(BIN)/python benchmarks/mirrored.py

# All methods at equal processor time, compared with others; hours on two cores, and it resumes.
bench-methods: $(VENV)/.peers
	$(BIN)/python benchmarks/methods.py

bench-strong-views: $(STAMP)
	$(BIN)/python benchmarks/strong_views.py

bench-neighbours: $(VENV)/.peers
	$(BIN)/python benchmarks/neighbours.py

bench-continued: $(STAMP)
	$(BIN)/python benchmarks/continued_methods.py

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

# Clusters of photographs by pretrained features, compared with other methods: PHOTOS=folder, with a folder for each kind.
bench-frozen: $(VENV)/.peers
	$(BIN)/python benchmarks/frozen.py $(PHOTOS)

bench-uneven: $(VENV)/.peers
	$(BIN)/python benchmarks/uneven.py $(PHOTOS)

bench-report: $(PAGE)
	$(BIN)/python benchmarks/report.py

bench-review: $(PAGE)
	$(BIN)/python benchmarks/review.py

bench-studio: $(PAGE)
	$(BIN)/python benchmarks/studio.py

# Seconds, memory and disk space with 100,000, a million and ten million images; hours, 20 GB of memory and of disk space.
bench-scale: $(STAMP)
	$(BIN)/python benchmarks/scale.py

bench-suggest: $(STAMP)
	$(BIN)/python benchmarks/suggest_k.py

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-gpu runs build dist site web/node_modules src/propos/review/report/page
