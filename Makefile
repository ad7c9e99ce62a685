# ebpfprof: make demo | test | build | generate | lint | bench | soak | matrix
# Everything that a target needs is installed by it, on Debian 12 with Go and root.

SHELL      := /bin/bash
GO         ?= go
CACHE      ?= $(HOME)/.cache/ebpfprof
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.2.0-dev)
# go-nvml resolves NVIDIA's functions when they are first called; with -z now,
# the default of hardened toolchains, the binary would not start without a driver.
LAZY       := -extldflags=-Wl,-z,lazy
# Its header marks as deprecated what older drivers need.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations
LDFLAGS    := -s -w -X github.com/ebpfprof/ebpfprof/internal/version.Version=$(VERSION)
export EBPFPROF_CACHE := $(CACHE)
export PATH := $(PATH):/usr/sbin:/sbin

.PHONY: all build demo s3 promtool test test-unit test-kernel soak test-matrix matrix matrix-tools generate check-generated lint short-runs diff-pairs planted fleet-faults bench bench-before bench-writers bench-answers bench-fleet bench-always-on fuzz deps torch jax python py-spy readers runtimes native checks clean

all: build

build: bin/ebpfprof bin/ebpfprof-agent

# Always rebuilt: Go knows best what changed.
.PHONY: bin/ebpfprof bin/ebpfprof-agent
bin/ebpfprof:
	$(GO) build -trimpath -ldflags '$(LDFLAGS) $(LAZY)' -o $@ ./cmd/ebpfprof
bin/ebpfprof-agent:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/ebpfprof-agent

# What the tests and the demo trace: Debian's PyTorch and PoCL, a compiler.
deps:
	testdata/setup/system-packages.sh

# PyPI's PyTorch, large, kept in $(CACHE) outside of the repository.
torch:
	testdata/setup/torch-venv.sh

# A CPython that Debian 12 has not, kept in $(CACHE) with its own C library.
python:
	testdata/setup/python-3.14.sh

# The profiler that samples are compared with, likewise.
py-spy:
	testdata/setup/py-spy.sh

# What boots the kernels of the matrix: qemu.
matrix-tools:
	testdata/setup/matrix.sh

# The kernels that people run, booted under qemu, and the tracer in them: half an hour
# to an hour. KERNELS=6.1,7.3-arm64 chooses; docs/kernels.md is written of all of them.
matrix:
	testdata/setup/matrix.sh --long
	$(GO) run ./internal/dev/matrix $(if $(KERNELS),-kernels '$(KERNELS)') -write

# Each program, loaded by itself on four of them: some five minutes.
test-matrix: matrix-tools
	$(GO) run ./internal/dev/matrix -short $(if $(KERNELS),-kernels '$(KERNELS)')

# What exports and datasets are read back with; the tests that need it are skipped without.
readers:
	@testdata/setup/readers.sh || echo "going on without them: the tests that read exports and datasets with them are skipped"

# JAX and its CUDA plugin, likewise.
jax:
	testdata/setup/jax.sh

# Libraries of libcuda, HIP, RCCL and Level Zero that are newer than Debian 12, likewise.
# Without them all but the few tests that look into them run.
runtimes:
	@testdata/setup/runtime-libraries.sh || echo "going on without them: the tests that look into these libraries are skipped"

# A server with S3's protocol, likewise.
s3:
	@testdata/setup/versitygw.sh || echo "going on without it: the tests of buckets are skipped"

# What evaluates the rules of deploy/alerts.yaml, likewise.
promtool:
	@testdata/setup/promtool.sh || echo "going on without it: the test of alerts is skipped"

native:
	$(MAKE) -s -C testdata/native
	$(MAKE) -s -C testdata/stubs

# On a machine with an NVIDIA GPU: real work under the tracer, compared launch by
# launch with what torch.profiler counted, into docs/gpu-check.json. Elsewhere it
# says that there is none; the tests run it on the stub devices.
gpu-check: bin/gpucheck
	bin/gpucheck

.PHONY: bin/gpucheck gpu-check
bin/gpucheck:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.Version=$(VERSION)' -o $@ ./internal/dev/gpucheck

demo: build
	testdata/setup/demo.sh

# To fetch and unpack takes one CPU, to compile and check another.
test: deps
	$(MAKE) -j 3 torch checks jax runtimes native python py-spy readers s3 promtool
	$(MAKE) -s test-unit
	$(MAKE) -s test-kernel
	$(MAKE) -s test-matrix

# What needs nothing that is fetched. One after the other: check-generated writes
# what the rest reads.
checks:
	$(MAKE) build
	$(MAKE) check-generated
	$(MAKE) lint

# No root, no kernel: parsers, planners, writers; with the race detector.
# Packages that start goroutines, serve, or have locks are tested with the race detector; in the
# others it has nothing to find, and takes as long.
test-unit:
	@racy=$$($(GO) list $$(grep -rlE --include='*.go' --exclude='*_test.go' \
		'^[[:space:]]*go [a-zA-Z_.]+\(|\.Go\(|http\.Serve|sync\.(RW)?Mutex|atomic\.' analysis bpf cmd internal output symbolize tracer | xargs -n1 dirname | sort -u | sed 's,^,./,')) && \
	{ $(GO) test -race -short $$racy; raced=$$?; \
	$(GO) test -short $$($(GO) list ./... | grep -vxF "$$racy") && exit $$raced; }

# Real jobs under real probes. The packages that come first wait for a third of their time.
# Tests of internal/testkit/e2e that compare times have the machine alone. Of the others eight have begun at a time, most of which wait: no two trace the
# same library (internal/testkit/e2e/harness/beside.go), and most trace one of two PyTorches.
test-kernel: build native
	$(GO) run ./internal/dev/testrun -again 2 -- -p 3 -count 1 -timeout 20m ./internal/testkit/badinput/... ./tracer/... ./bpf/... ./symbolize/elf ./symbolize/cpython
	$(GO) run ./internal/dev/testrun -again 4 -- -p 1 -count 1 -parallel 8 -timeout 40m ./internal/testkit/e2e/...
	$(MAKE) -s -j 2 test-readers test-soak

# The first wants the CPUs for most of its time, the second for little.
.PHONY: test-readers test-soak
test-readers:
	$(GO) test -count 1 -run ForeignReaders ./output ./internal/fleet/report ./internal/fleet/registrar ./internal/cli/commands/fleet
test-soak:
	$(GO) run ./internal/dev/soak -for 1m
	$(GO) test -count 1 -run TestAWorkersMemoryIsFlat ./internal/agent/worker

# What the tracer takes while jobs never stop to bring something new: for an hour at
# night (SOAK=1h), for a minute in the tests. What the agent takes while a thousand jobs come
# and go, and a worker in two real hours and in a simulated day.
SOAK     ?= 1h
WATCHED  ?= 2h
RESTARTS ?= 1000
soak: build native torch
	$(GO) run ./internal/dev/soak -for $(SOAK)
	$(GO) run ./internal/dev/soak -restarts $(RESTARTS)
	$(GO) run ./internal/dev/soak -watched $(WATCHED)
	EBPFPROF_SIMULATED=24h $(GO) test -count 1 -v -timeout 1h -run TestAWorkersMemoryIsFlat ./internal/agent/worker
	EBPFPROF_IN_OUT=10000 $(GO) test -count 1 -timeout 2h -run TestProbesInAndOutThousandsOfTimesHarmNobody ./tracer
	EBPFPROF_KILLS=1000 $(GO) test -count 1 -timeout 4h -run TestATracerKilledAtAnyInstantHarmsNobody ./internal/testkit/e2e

# How right the estimates of short jobs are: eight jobs, twenty runs of each, an hour.
RUNS ?= 20
short-runs: build deps torch
	$(GO) run ./internal/dev/shortruns -runs $(RUNS) $(if $(STEPS),-steps $(STEPS)) -python "$(CACHE)/torch-venv/bin/python"

# How far the verdicts of diff can be trusted: twenty pairs of the same job, and ten of
# which one side has a slower operator; a quarter of an hour on a machine that does nothing else.
PAIRS ?= 20
diff-pairs: build deps torch
	$(GO) run ./internal/dev/pairs -pairs $(PAIRS) -python "$(CACHE)/torch-venv/bin/python"

# How true findings are: eight planted problems and a healthy loop, and what mending each brings.
planted: build deps torch
	$(GO) run ./internal/dev/planted -python "$(CACHE)/torch-venv/bin/python"

# How well the fleet names what is wrong: eleven faults in one of three ranks, three times each, and healthy windows.
fleet-faults: build deps torch
	$(GO) run ./internal/dev/fleetfaults -runs $(or $(RUNS_OF_FAULTS),3) -healthy $(or $(HEALTHY),20) -window $(or $(WINDOW),10s) $(if $(FAULTS),-faults '$(FAULTS)') -python "$(CACHE)/torch-venv/bin/python"

generate:
	$(GO) generate ./...

# The committed objects are those that the pinned compiler makes of the source.
check-generated:
	@cp -r bpf .bpf-committed && $(GO) generate ./bpf && \
	for f in bpf/*.o bpf/*_bpfel.go; do cmp "$$f" ".bpf-committed/$$(basename $$f)" || { rm -rf .bpf-committed; echo "run 'make generate' and commit the result"; exit 1; }; done; \
	rm -rf .bpf-committed; echo "generated BPF objects are up to date"

lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	shellcheck $$(git ls-files '*.sh' .ci/run)
	$(GO) run ./internal/dev/columns $$(git ls-files README.md "docs/*.md")

# ARGS are the bench's own: make bench ARGS='-quick -only hit,launch'.
bench: build native deps torch py-spy
	$(GO) run ./internal/dev/bench $(ARGS)

# What the agent costs a job in half an hour, and the node: the worst case and a GPT, a ratio to
# their twins each. Of a quiet machine, 45 minutes a job; ALWAYS=2m to see that it works.
ALWAYS ?= 30m
bench-always-on: build deps torch
	$(GO) run ./internal/dev/bench -only always-on -for $(ALWAYS) -torch 2 $(ARGS)

# This tree's figures and those of another commit, in turn: make bench-before BEFORE=v1.0
PARTS ?= hit,launch,attach,samples
bench-before: deps torch
	GO=$(GO) testdata/setup/bench-before.sh '$(BEFORE)' '$(PARTS)'

# The writer of datasets beside the column writers of two libraries, one core each.
bench-writers:
	GOMAXPROCS=1 taskset -c 1 $(GO) test ./output -run '^$$' -bench Writers -benchtime 2000000x -count 3

# Import of 100 MB of JSON, exports, a report and a tree of a million (synthetic) spans. Of fifty millions:
# make bench-answers SPANS=50000000 TIMES=1x
SPANS ?= 1000000
TIMES ?= 3x
bench-answers:
	EBPFPROF_BENCH_SPANS=$(SPANS) $(GO) test ./internal/exchange/export ./internal/answer/report ./internal/model/calltree -run '^$$' \
		-bench 'Export|Import|Report|Tree' -benchtime $(TIMES) -timeout 2h

# Who is slow among 10,000 synthetic workers, and a report of the files of 1,000 synthetic
# agents, on two cores: some minutes.
bench-fleet:
	GOMAXPROCS=2 $(GO) test ./internal/fleet/localise ./internal/fleet/report -run '^$$' -bench 'TenThousand|ThousandAgents' -benchtime 1x -timeout 1h

# Every parser of bytes that others wrote, so long each: make fuzz FUZZTIME=1h
# FUZZ=Maps runs those whose package and name have that in them.
FUZZTIME ?= 1m
FUZZ     ?= .
fuzz:
	GO=$(GO) testdata/setup/fuzz.sh $(FUZZTIME) '$(FUZZ)'

clean:
	rm -rf bin
