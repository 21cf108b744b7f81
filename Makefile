# make help lists the targets. Nothing here needs Docker or a running database: the tests start a private PostgreSQL.

GO ?= go
# Where pinned tools are built to; a second checkout may share them.
TOOLS ?= $(CURDIR)/.cache/tools
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
FUZZTIME ?= 30s

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build everything
	$(GO) build ./...

.PHONY: test
test: ## Run all tests
	$(GO) test ./...

.PHONY: test-race
test-race: ## Run all tests with the race detector
	GORACE=atexit_sleep_ms=0 $(GO) test -race ./...

.PHONY: massive
massive: ## Run the 7,121 jobs of a real project (PELTON_AZKABAN_DIR, or a made-up one) through pelton dev
	PELTON_MASSIVE=all $(GO) test -count=1 -v -timeout 30m -run TestMassiveProject ./cmd/pelton

# Each alone, because some measure memory or keep the machine busy: make scenarios SCENARIO=TestKilledAtRandom
SCENARIO ?= TestKilledAtRandom TestResultsRaceTheReaper TestLargeOutputs TestLargeResults TestIdleWorkers TestLongJobIsNotRescued \
	TestBusiestSchedulerIsKilledAgainAndAgain TestRestoredDumpGoesOn TestRestoredBaseBackupGoesOn TestLoadtestOfPages

.PHONY: scenarios
scenarios: ## Run scenarios at full size, some for hours; SCENARIO=Name for one (docs/scenarios.md)
	@set -e; for scenario in $(SCENARIO); do \
		PELTON_SCENARIOS=full $(GO) test -count=1 -v -timeout 8h -run "^$$scenario\$$" ./...; \
	done

.PHONY: loadtest
loadtest: ## Measure the drain of 200,000 jobs against River, five rounds
	$(GO) run ./cmd/pelton loadtest drain --jobs 200000 --rounds 5

.PHONY: loadtest-pin
loadtest-pin: ## Measure the drain of 600,000 jobs alone, under a pinned snapshot, and under a writer that stays open
	$(GO) run ./cmd/pelton loadtest drain --jobs 600000 --rounds 3 --engine pelton
	$(GO) run ./cmd/pelton loadtest drain --jobs 600000 --rounds 3 --engine pelton --pin
	$(GO) run ./cmd/pelton loadtest drain --jobs 600000 --rounds 3 --engine pelton --pin-writer

.PHONY: loadtest-idle
loadtest-idle: ## Measure wake-ups of an idle executor and its statements a minute
	$(GO) run ./cmd/pelton loadtest wake
	$(GO) run ./cmd/pelton loadtest idle

.PHONY: loadtest-flow
loadtest-flow: ## Measure flows: fans of 10,000 nodes, and the time from a node to the next
	$(GO) run ./cmd/pelton loadtest flow

.PHONY: loadtest-schedules
loadtest-schedules: ## Measure schedules: 10,000 in the same second, and what firing costs with 1,000 and 1,000,000 stored
	$(GO) run ./cmd/pelton loadtest burst --schedules 10000
	$(GO) run ./cmd/pelton loadtest schedules

.PHONY: loadtest-pages
loadtest-pages: ## Measure the page and the API with 20 million jobs that ended and a million that wait: 15 GB of disk, a quarter of an hour
	$(GO) run ./cmd/pelton loadtest pages --finished 20000000 --ready 1000000

SCREENSHOTS ?= $(CURDIR)/.cache/screenshots

.PHONY: screenshots
screenshots: ## Write pictures of every page, wide and narrow, light and dark, to SCREENSHOTS; needs Chromium
	PELTON_SCREENSHOTS=$(SCREENSHOTS) $(GO) test -count=1 -run "Fit$$" ./admin/internal/page

.PHONY: vet
vet: ## Run go vet
	$(GO) vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters, the import table among them
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format all Go files
	$(GOLANGCI_LINT) fmt ./...

.PHONY: tidy
tidy: ## Bring go.mod and go.sum up to date
	$(GO) mod tidy

.PHONY: check
check: ## Everything that a change must pass
	$(GO) mod tidy -diff
	$(MAKE) lint vet test-race

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

.PHONY: tools
tools: $(GOLANGCI_LINT) ## Build the pinned tools

$(GOLANGCI_LINT):
	@mkdir -p $(TOOLS)/new
	GOBIN=$(TOOLS)/new GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(TOOLS)/new/golangci-lint $@

.PHONY: clean
clean: ## Remove what builds and tools left in this directory
	rm -rf bin .cache
