# Capstan. `make help` lists what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
export CAPSTAN_GIT_COMMIT := $(shell git rev-parse --short HEAD 2>/dev/null)
# Upstream's own binaries, for the suites that run beside them.
UPSTREAM_DIR ?= $(or $(CAPSTAN_CACHE_DIR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/capstan)/upstream
# Whether benchmarks measure upstream's programs as well; empty for no.
UPSTREAM ?= yes

say = @printf '\033[1m==> %s\033[0m\n' "$(1)"

.PHONY: help
help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: run
run: ## Build Capstan, start a local control plane and watch a Cluster become Provisioned
	$(call say,Building capstan (unoptimised; make build makes the real one))
	@$(CARGO) build --locked -p capstan
	$(call say,A management plane on this machine; Ctrl-C stops it)
	@$(CARGO) run --quiet --locked -p capstan -- quickstart $(ARGS)

.PHONY: build
build: ## Build the binary as it is shipped, target/dist/capstan
	$(call say,Building the binary as it is shipped: ten minutes on two cores)
	@$(CARGO) build --profile dist --locked -p capstan

.PHONY: test
test: lint control-plane ## Run the checks, the unit tests and the stories on a real control plane
	$(call say,Unit tests and stories)
	@$(CARGO) test --workspace --locked --no-fail-fast

# The operator's scenes with a fault at chosen points: as many of each scene, or all.
.PHONY: test-faults
test-faults: control-plane ## Play the operator's scenes with faults: POINTS of each (all), SCENE alone, from SEED on
	@CAPSTAN_FAULTS=$(or $(POINTS),all) CAPSTAN_SEED=$(or $(SEED),1) $(if $(SCENE),CAPSTAN_SCENE=$(SCENE)) \
	  $(CARGO) test --workspace --locked --test operator -- --nocapture every_scene

# Always of the whole workspace: other features of dependencies would build them again.
.PHONY: test-compat
test-compat: upstream control-plane ## Run the suites beside upstream's own binaries and manifests
	$(call say,Suites beside upstream)
	@CAPSTAN_UPSTREAM_CRD="$$(cat $(UPSTREAM_DIR)/cluster-api.dir)/core/config/crd/bases/cluster.x-k8s.io_clusters.yaml" \
	  $(CARGO) test --workspace --locked --test upstream_crd -- --ignored
	@$(CARGO) run --quiet --locked -p xtask -- release --out $(CURDIR)/target/compat-release
	@CAPSTAN_UPSTREAM_DIR=$(UPSTREAM_DIR) CAPSTAN_RELEASE_DIR=$(CURDIR)/target/compat-release \
	  $(CARGO) test --workspace --locked --test compat -- --ignored
	$(call say,Every check of the contract on every broken provider)
	@$(CARGO) test --workspace --locked --test dynamic -- --ignored

.PHONY: fuzz
fuzz: ## Run the fuzz targets, TIME seconds each (30), all or TARGETS
	$(call say,Fuzz targets)
	@CARGO=$(CARGO) fuzz/run.sh $(or $(TIME),30) $(TARGETS)

.PHONY: upstream
upstream:
	$(call say,Fetching upstream's Go modules into $(UPSTREAM_DIR))
	@compat/fetch-upstream.sh $(UPSTREAM_DIR) clusterctl capi-core cert-manager kubeadm kubernetes-api releases

.PHONY: bench
bench: bench-render bench-lifecycle bench-core bench-operator bench-webhook ## Measure commands, controllers and webhooks

.PHONY: bench-build
bench-build: build
	$(call say,Building the benchmark)
	@$(CARGO) build --release --locked -p capstan-bench

.PHONY: bench-core
bench-core: bench-build control-plane ## Measure the Cluster controller beside upstream's (alone with UPSTREAM=)
	$(if $(UPSTREAM),@compat/fetch-upstream.sh $(UPSTREAM_DIR) capi-core)
	@target/release/capstan-bench core --binary target/dist/capstan $(if $(UPSTREAM),--upstream $(UPSTREAM_DIR)/capi-core \
	  --upstream-crds "$$(cat $(UPSTREAM_DIR)/cluster-api.dir)/core/config/crd/bases") $(ARGS)

.PHONY: bench-operator
bench-operator: bench-build control-plane ## Measure the provider operator beside upstream's (alone with UPSTREAM=)
	@compat/fetch-upstream.sh $(UPSTREAM_DIR) $(if $(UPSTREAM),capi-operator) releases cert-manager
	@target/release/capstan-bench operator --binary target/dist/capstan --releases $(UPSTREAM_DIR)/releases \
	  --cert-manager $(UPSTREAM_DIR)/cert-manager/v1.18.2/cert-manager.yaml $(if $(UPSTREAM),--upstream $(UPSTREAM_DIR)/capi-operator \
	  --upstream-crds "$$(cat $(UPSTREAM_DIR)/cluster-api-operator.dir)/config/crd/bases")

.PHONY: bench-webhook
bench-webhook: bench-build control-plane ## Measure small reviews beside requests that never end and idle connections
	@target/release/capstan-bench webhook --binary target/dist/capstan $(ARGS)

.PHONY: bench-render
bench-render: bench-build ## Measure the commands that print manifests beside clusterctl (alone with UPSTREAM=)
	@compat/fetch-upstream.sh $(UPSTREAM_DIR) $(if $(UPSTREAM),clusterctl) releases
	@target/release/capstan-bench render --binary target/dist/capstan --releases $(UPSTREAM_DIR)/releases \
	  $(if $(UPSTREAM),--upstream $(UPSTREAM_DIR)/clusterctl)

.PHONY: bench-lifecycle
bench-lifecycle: bench-build control-plane ## Measure init, upgrade and delete beside clusterctl (alone with UPSTREAM=)
	@compat/fetch-upstream.sh $(UPSTREAM_DIR) $(if $(UPSTREAM),clusterctl) releases cert-manager
	@target/release/capstan-bench lifecycle --binary target/dist/capstan --releases $(UPSTREAM_DIR)/releases \
	  --cert-manager $(UPSTREAM_DIR)/cert-manager/v1.18.2/cert-manager.yaml \
	  $(if $(UPSTREAM),--upstream $(UPSTREAM_DIR)/clusterctl)

.PHONY: control-plane
control-plane: ## Build etcd and the Kubernetes control plane into the per-user cache, once
	$(call say,A control plane for the stories)
	@$(CARGO) run --quiet --locked -p xtask -- control-plane

.PHONY: config
config: ## Write the generated manifests under config/ and the operator's chart under charts/
	@$(CARGO) run --quiet --locked -p xtask -- config

.PHONY: release
release: ## Write the release files of our providers and the operator under dist/ (VERSION=v0.1.0)
	$(call say,Release files)
	@$(CARGO) run --quiet --locked -p xtask -- release $(if $(VERSION),--version $(VERSION))

.PHONY: fmt
fmt: ## Format the code
	@$(CARGO) fmt --all

.PHONY: lint
lint: deny ## Check formatting, lints and dependencies
	$(call say,Formatting and lints)
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Advisories come from a database on the network, which not every machine may reach.
.PHONY: deny
deny: ## Check licences, sources and bans of all dependencies, and advisories where their database can be fetched
	$(call say,Dependencies)
	@if ! command -v cargo-deny >/dev/null; then \
	  echo "not checked: bans, licences, sources and advisories of dependencies (cargo install cargo-deny --locked)"; \
	else \
	  $(CARGO) deny --locked check --hide-inclusion-graph bans licenses sources || exit 1; \
	  if timeout 60 $(CARGO) deny --locked fetch db >/dev/null 2>&1; then \
	    $(CARGO) deny --locked check --hide-inclusion-graph --disable-fetch advisories; \
	  else echo "not checked: advisories of dependencies (their database cannot be fetched)"; fi; \
	fi
