# Everything a person or the build server does with this repository. `make help` lists the targets.
#
#   PYTHON       the Python that .venv is made of
#   PYTEST_ARGS  more arguments for pytest: make test-unit PYTEST_ARGS="-k quota -x"
#   UPGRADE      make lock UPGRADE=1 takes the newest versions that pyproject.toml allows
#   RUNS         how many random runs make test-clusters plays, 3 by default
#   MINUTES      how long make soak takes, 10 by default; SEED is that of its plan
#   RAY          make ray RAY=2.52 and make test-redis RAY=2.52 take the older Ray
#   VERSIONS     which make test-versions runs on: make test-versions VERSIONS="1.37.2 1.36.3"
#   TAG          the tag of a release, v and the version: make release-check TAG=v0.1.0
#   REGISTRY     name of the container image, with the registry where it goes; as images are called,
#                in lower case
#   IMAGE        name and tag of the container image; the tag is TAG without its v, or dev
#   BASE_IMAGE   what the image is built on; name a digest here for a build that can be repeated

PYTHON ?= python3
PYTEST_ARGS ?=
UPGRADE ?=
TAG ?=
REGISTRY ?= muster
IMAGE ?= $(shell printf %s '$(REGISTRY)' | tr '[:upper:]' '[:lower:]'):$(if $(TAG),$(TAG:v%=%),dev)
BASE_IMAGE ?= python:3.13-slim

VENV := .venv
BIN := $(VENV)/bin
# Four files of tests at a time on two cores: those on a control plane mostly wait. They begin in
# the order of tests/conftest.py: the longest first, so that no worker is left alone. Bytecode is
# written whatever the environment says: it holds the rewritten asserts, which take 7 s of CPU to
# make in each process. A worker that crashes is not replaced: the others end what they have begun.
WORKERS := --numprocesses=4 --dist=loadfile --no-loadscope-reorder --max-worker-restart=0
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(WORKERS) --durations=10
# Seconds after which `make test` ends itself: three times what it takes on two slow, quiet cores.
TEST_SECONDS := 4500
READY := $(VENV)/ready
PIP_INSTALL := -m pip install --quiet --no-input --disable-pip-version-check

# Made with the oldest Python that pyproject.toml admits, so that every newer one can use the pins.
LOCK_PYTHON := 3.11
LOCK_TOOLS := pip-tools==7.6.2 dependency-groups==1.3.2
LOCK_DIR := out/lock

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- the environment ----------------------------------------------------------------------------

.PHONY: venv
venv: $(READY) ## make .venv: Python with the pinned packages and this checkout, editable

$(READY): requirements/dev.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "Muster needs Python 3.11 or newer, and there is no '$(PYTHON)' on PATH." \
	       "Name one: make PYTHON=/path/to/python3.13 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Muster needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
	       "Name another: make PYTHON=/path/to/python3.13 ..." >&2; exit 1; }
	@$(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo "'$(PYTHON)' has no venv module with pip in it." \
	         "On Debian and Ubuntu: apt install python3-venv. Or name another Python:" \
	         "make PYTHON=/path/to/python3.13 ..." >&2; exit 1; }; \
	  echo "Making $(VENV) with $$($(PYTHON) --version)"; \
	  $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing the packages of requirements/dev.txt into $(VENV); this can take a few minutes"
	@$(BIN)/python $(PIP_INSTALL) --require-hashes --only-binary :all: -r requirements/dev.txt
	@$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# ---- look and run -------------------------------------------------------------------------------

.PHONY: demo
demo: venv ## show gangs that start whole or not at all, on a real control plane (KEEP=1 leaves it up)
	$(BIN)/python -m demo

.PHONY: demo-redis
demo-redis: venv ray ## show a Ray head that loses its Redis and goes on (needs Redis and installs Ray)
	$(BIN)/python -m demo.redis

.PHONY: demo-clusters
demo-clusters: venv build ## show gangs that go to one of two clusters, the one with room for all
	$(BIN)/python -m demo.clusters

.PHONY: pictures
pictures: venv build ## draw the pictures of README and of the page; the page takes Chromium
	$(BIN)/python -m demo.pictures docs
	$(BIN)/python -m demo.page_pictures docs/pictures

.PHONY: bench
bench: venv build ## measure against the stock scheduler, as ratios
	$(BIN)/python -m benchmarks

# The cases of the table and the chart of docs/benchmarks.md.
FIGURES := burst gating backlog wakeup idle freed release webhook

.PHONY: figures
figures: venv build ## measure the aims of starting gangs; write table and chart into docs/ (an hour)
	$(BIN)/python -m benchmarks $(FIGURES) --json out/figures.json
	$(BIN)/python -m benchmarks.publish out/figures.json

# ---- check --------------------------------------------------------------------------------------

.PHONY: test
test: lint build ## check everything: format, lint, types, imports and all tests but the long ones
	$(PYTEST) -m "not long" --hypothesis-profile=repeatable -o run_timeout=$(TEST_SECONDS) $(PYTEST_ARGS)

.PHONY: test-rights
test-rights: venv build ## run all on control planes but the long ones, and prove that each right of Muster's accounts is used
	$(PYTEST) -m "controlplane and (variant or not long)" $(PYTEST_ARGS)

.PHONY: test-unit
test-unit: venv ## run the tests that need no control plane
	$(PYTEST) --numprocesses=3 -m "not controlplane and not long" --hypothesis-profile=quick $(PYTEST_ARGS)

.PHONY: test-long
test-long: venv build ## run the tests that take minutes, and the quick ones on new examples
	$(BIN)/python -m testbed build --kubernetes 1.36.3
	$(BIN)/python -m testbed build --kubernetes 1.35.4
	$(BIN)/python -m testbed build --kuberay 1.5.1
	$(BIN)/python -m testbed build --kuberay 1.4.2
	@$(MAKE) ray RAY=2.52 || echo "No Ray 2.52, so the tests of its head will be skipped." >&2
	$(MAKE) test-redis RAY=2.52 PYTEST_ARGS="-k test_ray_head"
	@$(MAKE) ray || echo "No Ray, so the tests of its autoscaler and of jobs will be skipped." >&2
	@$(MAKE) image || echo "No image could be built, so the tests of its files will be skipped." >&2
	$(BIN)/python -m pytest -rs -m "not controlplane and not long" $(PYTEST_ARGS)
	MUSTER_TEST_IMAGE=$(IMAGE) $(BIN)/python -m pytest -rs -m long $(PYTEST_ARGS)

# A part of `make test-long`; what needs Ray is skipped unless `make ray` installed it.
.PHONY: test-redis
test-redis: venv ## run the tests of heads with state in Redis, on real servers
	MUSTER_TEST_RAY=$(RAY) $(BIN)/python -m pytest -rs tests/headstate $(PYTEST_ARGS)

RUNS ?= 3

# A part of `make test-long`, too.
.PHONY: test-clusters
test-clusters: venv build ## run the tests of several clusters, with RUNS of gangs under random faults
	MUSTER_TEST_RUNS=$(RUNS) $(BIN)/python -m pytest -rs -m controlplane tests/dispatcher $(PYTEST_ARGS)

VERSIONS ?=

.PHONY: test-versions
test-versions: venv ## run on each of VERSIONS of Kubernetes, all by default; state what came of it
	$(BIN)/python -m tests.versions --pytest="$(WORKERS)" $(VERSIONS)

MINUTES ?= 10
SEED ?=

.PHONY: soak
soak: venv build ## gangs under every fault for MINUTES; SEED= plays a plan again
	$(BIN)/python -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

.PHONY: lint
lint: venv ## check format, lint, types and imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: venv ## write the format and the fixes that ruff knows
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# ---- make things --------------------------------------------------------------------------------

.PHONY: build
build: venv ## build the control plane that demo and tests run on (minutes once, seconds after)
	$(BIN)/python -m testbed build

.PHONY: crds
crds: venv ## write the CRDs below manifests from the structs of kube/objects
	$(BIN)/python -m kube.objects.crds

.PHONY: map
map: venv ## print what each module does; write the list of packages in docs/architecture.md
	$(BIN)/python -m tests.packaging.map

.PHONY: recordings
recordings: venv ## write the recordings that tests/replay plays again
	$(BIN)/python -m tests.replay.recorded

.PHONY: allocator-records
allocator-records: venv ## record what kube-scheduler answers to its own tables of devices (Go)
	$(BIN)/python -m tests.scheduling.devices.recorded
	$(BIN)/python -m tests.kube.devices.plugin_recorded

.PHONY: chart
chart: venv build ## write the Helm chart in charts/muster from what kustomize builds of manifests
	$(BIN)/python -m charts

# The pages as a site, with tools of their own; a link that leads nowhere fails it.
DOCS_VENV := out/docs-venv

$(DOCS_VENV)/ready: requirements/docs.txt
	$(PYTHON) -m venv --clear $(DOCS_VENV)
	$(DOCS_VENV)/bin/python $(PIP_INSTALL) --require-hashes --only-binary :all: -r requirements/docs.txt
	@touch $@

.PHONY: docs
docs: $(DOCS_VENV)/ready ## build the pages of docs/ as a site in out/site
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet --site-dir out/site

# Ray itself, for long tests alone: 150 MB that nothing else needs. RAY=2.52 is the older one.
RAY ?=
RAY_NAME := ray$(if $(RAY),-$(RAY))
RAY_VENV := out/$(RAY_NAME)-venv

$(RAY_VENV)/ready: requirements/$(RAY_NAME).txt
	$(PYTHON) -m venv --clear $(RAY_VENV)
	$(RAY_VENV)/bin/python $(PIP_INSTALL) --require-hashes --only-binary :all: \
	  -r requirements/$(RAY_NAME).txt
	@touch $@

.PHONY: ray
ray: $(RAY_VENV)/ready ## install Ray beside .venv, for long tests and the demo of Redis

.PHONY: wheel
wheel: venv ## write wheel and source archive to dist/
	$(BIN)/python -m hatchling build -d dist -t sdist -t wheel

# The command as one file. Its tools stay out of .venv, in one place for each Python.
CLI_VENV := out/cli-venv-$(notdir $(PYTHON))
CLI_PACKAGES := out/cli-packages

$(CLI_VENV)/ready: requirements/build.txt requirements/cli.txt
	$(PYTHON) -m venv --clear $(CLI_VENV)
	$(CLI_VENV)/bin/python $(PIP_INSTALL) --require-hashes --only-binary :all: \
	  -r requirements/build.txt -r requirements/cli.txt
	@touch $@

.PHONY: cli
cli: $(CLI_VENV)/ready ## write `muster` as one file to dist/, for this platform and PYTHON
	rm -rf $(CLI_PACKAGES)
	$(CLI_VENV)/bin/python -m hatchling build -t wheel -d $(CLI_PACKAGES)/wheel
	$(CLI_VENV)/bin/python $(PIP_INSTALL) --require-hashes --only-binary :all: --no-compile \
	  --target $(CLI_PACKAGES)/site -r requirements/runtime.txt
	$(CLI_VENV)/bin/python $(PIP_INSTALL) --no-index --no-deps --no-compile --upgrade \
	  --target $(CLI_PACKAGES)/site $(CLI_PACKAGES)/wheel/*.whl
	$(CLI_VENV)/bin/python -m download.command_file $(CLI_PACKAGES)/site dist

# Where a release can be downloaded; the build server of GitHub says which repository it is.
REPOSITORY ?= $(GITHUB_SERVER_URL)/$(GITHUB_REPOSITORY)

.PHONY: krew
krew: venv ## write krew's archives and manifest to dist/, of what make cli wrote for each platform
	$(BIN)/python -m download.krew "$(REPOSITORY)" dist

# docker where its daemon answers, else buildah, which needs none and runs as root here.
.PHONY: image
image: ## build the container image, named by IMAGE, with docker or buildah
	@if docker info >/dev/null 2>&1; then set -- docker build; \
	elif command -v buildah >/dev/null 2>&1; then set -- buildah build --isolation chroot; \
	else echo "make image needs docker with its daemon, or buildah." >&2; exit 1; fi; \
	set -x; "$$@" --build-arg BASE_IMAGE=$(BASE_IMAGE) --tag $(IMAGE) .

.PHONY: push
push: ## send the image IMAGE to its registry
	docker push $(IMAGE)

# Only what the image and the wheel bring along; its tool stays out of .venv, with what that needs.
SBOM_VENV := out/sbom-venv

$(SBOM_VENV)/ready: requirements/sbom.txt
	$(PYTHON) -m venv --clear $(SBOM_VENV)
	$(SBOM_VENV)/bin/python $(PIP_INSTALL) --require-hashes --only-binary :all: -r requirements/sbom.txt
	@touch $@

.PHONY: sbom
sbom: $(SBOM_VENV)/ready ## list the packages that are shipped in out/sbom.json (CycloneDX)
	PYTHONWARNINGS=ignore $(SBOM_VENV)/bin/cyclonedx-py requirements --pyproject pyproject.toml \
	  --output-reproducible --output-file out/sbom.json requirements/runtime.txt

.PHONY: release-check
release-check: venv ## check that version, CHANGELOG and documents agree; TAG= and IMAGE= too
	$(BIN)/python -m tests.packaging.release --tag "$(TAG)" --image "$(IMAGE)"

.PHONY: release
release: release-check wheel sbom krew ## publish TAG on GitHub: wheel, source archive, command, SBOM
	$(BIN)/python -m tests.packaging.release --tag "$(TAG)" --notes out/notes.md
	gh release create "$(TAG)" --verify-tag --title "Muster $(TAG)" --notes-file out/notes.md \
	  dist/* out/sbom.json

.PHONY: lock
lock: ## pin the dependencies of pyproject.toml in requirements/, with hashes
	@$(PYTHON) -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(LOCK_PYTHON)")' || { \
	  echo "make lock needs Python $(LOCK_PYTHON), the oldest that Muster runs on:" \
	       "make lock PYTHON=/path/to/python$(LOCK_PYTHON)" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(LOCK_DIR)
	$(LOCK_DIR)/bin/python $(PIP_INSTALL) $(LOCK_TOOLS)
	sh requirements/lock.sh $(LOCK_DIR)/bin $(if $(UPGRADE),--upgrade)

.PHONY: clean
clean: ## remove archives and caches; .venv and the built control plane stay
	rm -rf dist build $(LOCK_DIR) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name .venv -prune -o -name out -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
