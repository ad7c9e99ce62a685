package tracer

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/ebpfprof/ebpfprof/bpf"
)

func TestTheLimitsAreThoseOfTheKernelsTables(t *testing.T) {
	header, err := os.ReadFile("../bpf/lives.h")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"PROCESS_THREADS": MaxThreadsOfProcess, "PROCESS_WAITS": MaxWaitsOfProcess,
		"PROCESS_SCOPES": MaxScopesOfProcess, "PROCESS_IO": MaxIOThreadsOfProcess} {
		m := regexp.MustCompile(`#define ` + name + ` (\d+)`).FindSubmatch(header)
		if m == nil {
			t.Errorf("%s is not in bpf/lives.h", name)
			continue
		}
		if n, _ := strconv.Atoi(string(m[1])); n != want {
			t.Errorf("%s is %d, in Go %d", name, n, want)
		}
	}
	call, err := bpf.LoadCall()
	if err != nil {
		t.Fatal(err)
	}
	sample, err := bpf.LoadSample()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ entries, want uint32 }{
		"targets":          {call.Maps["targets"].MaxEntries, MaxProcesses},
		"threads":          {call.Maps["threads"].MaxEntries, MaxThreads},
		"scopes":           {call.Maps["scopes"].MaxEntries, MaxOpenScopes},
		"counts of scopes": {call.Maps["scope_counts"].MaxEntries, MaxProcesses},
		"io_threads":       {sample.Maps["io_threads"].MaxEntries, MaxIOThreads},
		"waits":            {sample.Maps["waits"].MaxEntries, MaxWaitingThreads},
		"waits, a user's":  {sample.Maps["waits"].MaxEntries * 3 / 4, MaxOfUser},
		"scopes, a user's": {call.Maps["scopes"].MaxEntries * 3 / 4, MaxScopesOfUser},
	} {
		if c.entries != c.want {
			t.Errorf("%s has %d entries, in Go %d", name, c.entries, c.want)
		}
	}
}
