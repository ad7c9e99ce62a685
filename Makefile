# `make help` lists the targets. On Debian 12 with Go and root, each installs what it needs.
# Studies are run by themselves: CONTRIBUTING.md has their commands.

SHELL      := /bin/bash
GO         ?= go
CACHE      ?= $(HOME)/.cache/ebpfprof
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.2.0-dev)
# Once: all files of a run have one version.
VERSION    := $(VERSION)
LDFLAGS    := -s -w -X github.com/ebpfprof/ebpfprof/internal/version.Version=$(VERSION)
export EBPFPROF_CACHE := $(CACHE)
export PATH := $(PATH):/usr/sbin:/sbin

.PHONY: all cupti help check formatted build exam demo s3 promtool test test-unit test-kernel soak test-matrix matrix axe-core \
	matrix-tools generate check-generated lint bench bench-before fuzz deps torch jax python py-spy readers notebook-tools \
	wheel nfpm release runtimes native checks helm libbpf musl-python manifests cluster clean

all: build

help: ## list the targets
	@grep -hE '^[a-z][a-z0-9-]*:.* ## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.* ## /\1\t/' | expand -t 18

build: cupti bin/ebpfprof bin/ebpfprof-agent ## build both binaries into bin/

# What `run --device-times cupti` puts into a job, against headers that are fetched once. bin/ebpfprof embeds it.
CUPTI := internal/record/injection/built/libebpfprof-cupti.so
cupti: ## build the library that asks NVIDIA's CUPTI
	@$(MAKE) -s $(CUPTI) || echo "going on without it: --device-times cupti will be refused"
$(CUPTI): scripts/cupti.sh $(wildcard internal/record/injection/cupti/*)
	@$(STEP) "building the library that asks CUPTI, 1 min the first time" scripts/cupti.sh
bin/ebpfprof: | cupti

formatted:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt"; exit 1; }

# Needs neither root nor anything that is downloaded besides Go modules.
check: formatted ## format, vet and the tests without root or kernel
	$(GO) vet ./...
	$(GO) test -short ./...

# Always rebuilt: Go knows best what changed.
.PHONY: bin/ebpfprof bin/ebpfprof-agent
bin/ebpfprof:
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/ebpfprof
bin/ebpfprof-agent:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/ebpfprof-agent

# What the tests and the demo trace: Debian's PyTorch and PoCL, a compiler.
deps: ## install Debian's packages that the tests and the demo trace
	@$(STEP) "installing Debian's packages, 3 min the first time" scripts/system-packages.sh

# PyPI's PyTorch, large, kept in $(CACHE) outside of the repository.
torch: ## install PyPI's PyTorch into the cache
	@$(STEP) "fetching PyPI's PyTorch, 3 to 10 min the first time" scripts/torch-venv.sh

# axe-core checks the page's accessibility; it is kept in $(CACHE).
axe-core: ## fetch axe-core into the cache
	@scripts/axe-core.sh

# A CPython that Debian 12 has not, kept in $(CACHE) with its own C library.
python: ## install CPython 3.14 into the cache
	@$(STEP) "fetching CPython 3.14, under 1 min the first time" scripts/python-3.14.sh

# Slow jobs with one known cause each, recorded as a user would, and their mended versions: the first paragraph of
# report must name the cause, and must not name what was mended. EXAM is the directory of the jobs and their driver,
# exam.sh; JOBS="a b" chooses some of them.
exam: build ## record slow jobs with a known cause, and judge the first paragraph of report
	@test -x "$(EXAM)/exam.sh" || { echo "make exam EXAM=DIR: DIR has the jobs and their driver, exam.sh" >&2; exit 2; }
	scripts/exam-venv.sh
	PY=$(CACHE)/exam-venv/bin/python B=bin/ebpfprof $(EXAM)/exam.sh $(JOBS)
	TWINS=1 PY=$(CACHE)/exam-venv/bin/python B=bin/ebpfprof $(EXAM)/exam.sh $(JOBS)

# The profiler that samples are compared with, likewise.
py-spy: ## install py-spy into the cache
	@$(STEP) "fetching py-spy, under 1 min the first time" scripts/py-spy.sh

# A CPython on musl, Alpine's C library, likewise.
musl-python: ## build a CPython for musl into the cache
	@$(STEP) "building CPython for musl, 2 min the first time" scripts/musl-python.sh

# Upstream's loader, which the tests hold beside ours, likewise.
libbpf: ## build upstream's libbpf into the cache
	@$(STEP) "building libbpf, under 1 min the first time" scripts/libbpf.sh || \
		echo "going on without it: the tests that load with libbpf are skipped"

# What boots the kernels of the matrix: qemu.
matrix-tools: ## install qemu and the kernels of the short matrix
	@$(STEP) "installing qemu, 1 min the first time" scripts/matrix.sh

# The kernels that people run, booted under qemu, and the tracer in them: half an hour
# to an hour. KERNELS=6.1,7.3-arm64 chooses; docs/kernels.md is written of all of them.
matrix: ## boot all kernels under qemu and trace in them, 30 to 60 minutes; KERNELS=6.1,7.3-arm64 selects
	scripts/matrix.sh --long
	$(GO) run ./internal/dev/matrix $(if $(KERNELS),-kernels '$(KERNELS)') -write

# Each program, loaded by itself on four of them: some five minutes.
test-matrix: matrix-tools ## load every program on four kernels, about 5 minutes
	$(GO) run ./internal/dev/matrix -short $(if $(KERNELS),-kernels '$(KERNELS)')

# What exports and datasets are read back with; the tests that need it are skipped without.
readers: ## install other readers of Parquet and of the exports
	@$(STEP) "fetching readers of exports and datasets, 2 min the first time" scripts/readers.sh || \
		echo "going on without them: the tests that read exports and datasets with them are skipped"

# JAX and its CUDA plugin, likewise.
jax: ## install JAX and its CUDA plugin into the cache
	@$(STEP) "fetching JAX, 2 min the first time" scripts/jax.sh

# Libraries of libcuda, HIP, RCCL and Level Zero that are newer than Debian 12, likewise.
# Without them all but the few tests that look into them run.
runtimes: ## install newer accelerator runtimes into the cache
	@$(STEP) "fetching libraries of other vendors, 2 min the first time" scripts/runtime-libraries.sh || \
		echo "going on without them: the tests that look into these libraries are skipped"

# What runs docs/notebook.ipynb, likewise.
notebook-tools: ## install what runs the notebook of docs/
	@$(STEP) "fetching what runs notebooks, 1 min the first time" scripts/notebook.sh || \
		echo "going on without it: the test of the notebook is skipped"

# For pip: the program for glibc 2.28 and later, and the Python package ebpfprof, into bin/dist.
# ARCHES="x86_64 aarch64" chooses. Equal sources are equal wheels.
ARCHES ?= $(shell uname -m)
wheel: ## pack the program and its Python package for pip, into bin/dist; ARCHES="x86_64 aarch64"
	rm -rf bin/dist
	set -e; for arch in $(ARCHES); do \
		scripts/manylinux.sh $$arch bin/manylinux/ebpfprof-$$arch -ldflags '$(LDFLAGS) -linkmode=external'; \
		$(GO) run ./internal/dev/wheel -program bin/manylinux/ebpfprof-$$arch -platform manylinux_2_28_$$arch -version '$(VERSION)' -o bin/dist; \
	done

# What packs deb and rpm, likewise.
nfpm: ## install nfpm, which packs deb and rpm
	@$(STEP) "building nfpm, 3 min the first time" scripts/nfpm.sh

# Into bin/release: wheels, deb and rpm of both programs, the agent's image as an OCI layout, its chart, lists of what is
# in the programs, and the sums of all. Equal sources are equal files. For this machine's processor.
release: wheel nfpm bin/ebpfprof-agent ## make packages, the agent's image and chart, SBOMs and sums, into bin/release
	rm -rf bin/release
	$(GO) run ./internal/dev/release -program bin/manylinux/ebpfprof-$$(uname -m) -agent bin/ebpfprof-agent \
		-arch $$($(GO) env GOARCH) -version '$(VERSION)' -nfpm "$$(scripts/nfpm.sh --path)" -o bin/release
	cp bin/dist/*.whl bin/release/ && cd bin/release && sha256sum *.whl >>SHA256SUMS

# A server with S3's protocol, likewise.
s3: ## install an S3 server for the tests of buckets
	@$(STEP) "building a server with S3's protocol, 3 min the first time" scripts/versitygw.sh || \
		echo "going on without it: the tests of buckets are skipped"

# What evaluates the rules of deploy/alerts.yaml, likewise.
promtool: ## install promtool for the test of alerts
	@$(STEP) "building promtool, 4 min the first time" scripts/promtool.sh || echo "going on without it: the test of alerts is skipped"

# What renders and checks the chart of deploy/helm, likewise.
helm: ## install helm and kubeconform for the tests of the chart
	@$(STEP) "building helm and kubeconform, 4 min the first time" scripts/helm.sh || \
		echo "going on without them: the tests of the chart are skipped"

manifests: helm ## write deploy/agent-daemonset.yaml and agent-podmonitor.yaml from the chart
	scripts/manifests.sh "$$(scripts/helm.sh --path)" deploy

# One node of Kubernetes, built from the Go proxy and kept in $(CACHE)/cluster, and Debian's containerd: a PyTorch pod
# trains and the chart's agent records it. Writes docs/cluster.md. Nothing of the node stays behind.
cluster: build helm s3 ## run the chart on a real node of Kubernetes (root), 5 minutes; the first time 30 and 4 GB of disk
	scripts/cluster/run.sh "$(CACHE)/cluster" "$$(scripts/helm.sh --path)" '$(VERSION)'

native: ## compile the C test jobs and the stub runtimes
	$(MAKE) -s -C testdata/native
	$(MAKE) -s -C testdata/stubs

# On a machine with an NVIDIA GPU: real work under the tracer, compared launch by
# launch with what torch.profiler counted, into docs/gpu-check.json. Elsewhere it
# says that there is none; the tests run it on the stub devices.
gpu-check: bin/gpucheck ## trace real GPU work and compare counts with torch.profiler
	bin/gpucheck

.PHONY: bin/gpucheck gpu-check
bin/gpucheck:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.Version=$(VERSION)' -o $@ ./internal/dev/gpucheck

demo: bin/ebpfprof ## record a small training job and report on it
	scripts/demo.sh

# What a step does and how long that takes, before and behind it; of those of the tests the
# times are listed once more at the end.
STEP   := scripts/stage.sh
STAGES := $(CURDIR)/bin/test-stages.txt
STAGE  := EBPFPROF_STAGES=$(STAGES) $(STEP)

# To fetch and unpack takes one CPU, to compile and check another. What only the later
# stages need is fetched beside the unit tests, which use the CPUs; the kernels of the matrix
# boot beside the soak, which waits.
test: ## everything: install, build, generate, lint, all tests (root)
	@mkdir -p bin && rm -f $(STAGES)
	@$(STAGE) "Debian's packages, some minutes the first time" $(MAKE) -s deps
	@$(STAGE) "what the tests need is fetched and built and the source checked, 5 to 15 min the first time and 3 later" \
		$(MAKE) -s -j 3 torch checks runtimes native python s3 promtool libbpf musl-python axe-core
	@$(STAGE) "unit tests with the race detector beside what the next stages need, about 8 min" $(MAKE) -s -j 2 test-unit jax py-spy readers notebook-tools
	@$(MAKE) -s test-kernel
	@$(STAGE) "the soak and the tests with other readers, of the chart and the programs on four kernels, about 6 min" \
		$(MAKE) -s -j 2 test-readers test-soak test-chart test-matrix
	@echo "all stages passed:" && cat $(STAGES)

# What needs nothing that is fetched. One after the other: check-generated writes
# what the rest reads.
checks: ## build, check-generated and lint
	$(MAKE) build
	$(MAKE) check-generated
	$(MAKE) lint

# No root, no kernel: parsers, planners, writers; with the race detector.
# Packages that start goroutines, serve, or have locks are tested with the race detector; in the
# others it has nothing to find, and takes as long.
test-unit: ## tests without root or kernel, packages with goroutines under the race detector
	@racy=$$($(GO) list $$(grep -rlE --include='*.go' --exclude='*_test.go' \
		'^[[:space:]]*go [a-zA-Z_.]+\(|\.Go\(|http\.Serve|sync\.(RW)?Mutex|atomic\.' analysis bpf cmd internal output symbolize tracer | xargs -n1 dirname | sort -u | sed 's,^,./,')) && \
	{ $(GO) test -race -short $$racy; raced=$$?; \
	$(GO) test -short $$($(GO) list ./... | grep -vxF "$$racy") && exit $$raced; }

# Real jobs under real probes. The packages that come first wait for a third of their time.
# Tests of internal/testkit/e2e that compare times have the machine alone. Of the others eight have begun at a time,
# most of which wait: no two trace the same library (internal/testkit/e2e/harness/beside.go), and most trace one of two
# PyTorches.
# With PRICE=3 a hit of a probe has three times the price that is measured: as on a slower machine.
PRICE  ?=
PRICED := $(if $(PRICE),-ldflags "-X github.com/ebpfprof/ebpfprof/tracer/kernel.priceFactor=$(PRICE)")
test-kernel: build native ## tests that attach probes to real jobs (root); PRICE=3 multiplies what a hit costs
	@$(STAGE) "the tracer under the kernel, about 5 min" $(MAKE) -s test-tracer
	@$(STAGE) "real jobs from end to end, about 25 min" $(MAKE) -s test-jobs

.PHONY: test-tracer test-jobs test-libbpf
test-tracer:
	$(GO) run ./internal/dev/testrun -again 2 -- -p 3 -count 1 -timeout 40m $(PRICED) \
		./internal/testkit/badinput/... ./tracer/... ./bpf/... ./symbolize/elf ./symbolize/cpython
	@$(MAKE) -s test-libbpf
# The same objects, loaded and attached by upstream's libbpf: each count has to be equal.
test-libbpf:
	@if scripts/libbpf.sh --check; then \
		set -e; export $$(scripts/libbpf.sh --env); \
		$(GO) vet -tags libbpf ./bpf ./tracer/uprobe ./internal/testkit/libbpf; \
		$(GO) run ./internal/dev/testrun -- -count 1 -tags libbpf -run UpstreamLibbpf ./tracer; \
	else echo "SKIP what libbpf counts: it is not built here; make libbpf says why"; fi
test-jobs:
	EBPFPROF_PRICE=$(PRICE) $(GO) run ./internal/dev/testrun -again 4 -- -p 1 -count 1 -parallel 8 -timeout 80m ./internal/testkit/e2e/...

# The first wants the CPUs for most of its time, the second for little.
.PHONY: test-readers test-soak test-chart
test-readers:
	$(GO) test -count 1 -run ForeignReaders ./output ./internal/fleet/report ./internal/fleet/registrar ./internal/cli/commands/fleet
test-chart: helm
	$(GO) test -count 1 -run 'Chart|Manifests' ./internal/agent
test-soak:
	$(GO) run ./internal/dev/soak -for 1m
	$(GO) test -count 1 -run TestAWorkersMemoryIsFlat ./internal/agent/worker

# What the tracer takes while jobs never stop to bring something new: for an hour at
# night (SOAK=1h), for a minute in the tests. What the agent takes while a thousand jobs come
# and go, and a worker in two real hours and in a simulated day.
SOAK     ?= 1h
WATCHED  ?= 2h
RESTARTS ?= 1000
soak: build native torch ## run for hours and check memory, restarts and kills; SOAK=1h
	$(GO) run ./internal/dev/soak -for $(SOAK)
	$(GO) run ./internal/dev/soak -restarts $(RESTARTS)
	$(GO) run ./internal/dev/soak -watched $(WATCHED)
	EBPFPROF_SIMULATED=24h $(GO) test -count 1 -v -timeout 1h -run TestAWorkersMemoryIsFlat ./internal/agent/worker
	EBPFPROF_IN_OUT=10000 $(GO) test -count 1 -timeout 2h -run TestProbesInAndOutThousandsOfTimesHarmNobody ./tracer
	EBPFPROF_KILLS=1000 $(GO) test -count 1 -timeout 4h -run TestATracerKilledAtAnyInstantHarmsNobody ./internal/testkit/e2e

generate: ## regenerate BPF objects (pinned clang), tables and pages
	$(GO) generate ./...

# Generated files are committed: BPF objects with their Go, and two pages of docs/.
check-generated: generate ## fail if generated files differ from the committed ones
	@git diff --exit-code -- bpf/*.o 'bpf/*_bpfel.go' docs/schema.md docs/commands.md || { echo "run 'make generate' and commit the result"; exit 1; }

lint: formatted ## gofmt, vet, staticcheck, shellcheck, line lengths
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	shellcheck $$(git ls-files '*.sh' .ci/run)
	$(GO) run ./internal/dev/columns $$(git ls-files "*.md" ":!testdata" ":!cmd")

# ARGS are the bench's own: make bench ARGS='-quick -only hit,launch'.
bench: build native deps torch py-spy ## measure the overhead; ARGS='-quick -only hit'
	$(GO) run ./internal/dev/bench $(ARGS)

# This tree's figures and those of another commit, in turn: make bench-before BEFORE=v1.0
PARTS ?= hit,launch,attach,samples
bench-before: deps torch ## measure this tree and another commit in turn; BEFORE=v1.0
	GO=$(GO) scripts/bench-before.sh '$(BEFORE)' '$(PARTS)'

# Every parser of bytes that others wrote, so long each: make fuzz FUZZTIME=1h
# FUZZ=Maps runs those whose package and name have that in them.
FUZZTIME ?= 1m
FUZZ     ?= .
fuzz: ## fuzz every parser of foreign bytes; FUZZTIME=1h FUZZ=Maps
	GO=$(GO) scripts/fuzz.sh $(FUZZTIME) '$(FUZZ)'

clean: ## remove bin/
	rm -rf bin
