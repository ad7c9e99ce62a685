package tracer

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// tinyRuntime is all that a new runtime takes.
var tinyRuntime = spec.Group{
	Name: "tiny", Tier: spec.Anchor,
	Functions: []spec.Function{
		tiny("tiny_kernel", "module", func(f *spec.Function) {
			f.Effect, f.Text, f.TextArg = spec.NamesKernel, spec.CStringLong, 1
			f.Values = []spec.Value{spec.Out(spec.FieldHandle, 0)}
		}),
		tiny("tiny_launch", "launch", func(f *spec.Function) {
			f.Name = spec.FromKernel
			f.Values = []spec.Value{
				spec.Reg(spec.FieldStream, 0), spec.Reg(spec.FieldKernel, 1),
				spec.Reg32(spec.FieldWorkX, 2), spec.Reg32(spec.FieldBlockX, 3),
			}
		}),
		tiny("tiny_memory", "alloc", func(f *spec.Function) {
			f.Values = []spec.Value{spec.Out(spec.FieldAddress, 0), spec.Reg(spec.FieldBytes, 1)}
			f.Memory = &spec.Memory{Space: "device", Level: "driver", Action: "alloc"}
		}),
		tiny("tiny_return", "free", func(f *spec.Function) {
			f.Values = []spec.Value{spec.Reg(spec.FieldAddress, 0)}
			f.Memory = &spec.Memory{Space: "device", Level: "driver", Action: "free"}
		}),
	},
}

func tiny(symbol, category string, with func(*spec.Function)) spec.Function {
	f := spec.Function{
		Library: "libtiny.so", Symbol: symbol, Exact: true, Layer: "runtime", Category: category, Runtime: "tiny",
		Label: symbol, Action: spec.Span, End: spec.Return, StatusOK: true,
	}
	with(&f)
	return f
}

func TestANewRuntimeIsOnlyATable(t *testing.T) {
	needKernel(t)
	directory := filepath.Join("..", "testdata", "stubs")
	if out, err := exec.Command("make", "-s", "-C", directory).CombinedOutput(); err != nil {
		t.Fatalf("building the stubs: %v\n%s", err, out)
	}
	job := exec.Command(filepath.Join(directory, "build", "tiny"))
	stdin, _ := job.StdinPipe()
	stdout, _ := job.StdoutPipe()
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	defer job.Process.Kill()
	bufio.NewScanner(stdout).Scan() // ready
	sink := &recordingSink{}
	session, err := Open(t.Context(), Options{PIDs: []int{job.Process.Pid}, BufferBytes: 4 << 20, Budget: Unlimited,
		catalog: []spec.Group{tinyRuntime}}, sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	io.WriteString(stdin, "go\n")
	if err := job.Wait(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	counts := countSpans(sink.spans)
	if counts["double_it"] != 100 || counts["tiny_kernel"] != 2 || len(sink.spans) != 104 {
		t.Errorf("spans: %v", counts)
	}
	blocks := int64(0)
	for _, s := range sink.spans {
		switch {
		case s.Call.Name == "double_it":
			blocks++
			if *s.Detail.Stream != 5 || s.Detail.Work[0] != blocks || s.Detail.Block[0] != 64 {
				t.Fatalf("launch %d: %+v", blocks, s.Detail)
			}
		case s.Status == StatusError && *s.Detail.ErrorCode != 7:
			t.Errorf("%s failed with %d", s.Call.Name, *s.Detail.ErrorCode)
		}
	}
	if len(sink.memory) != 2 || *sink.memory[0].Bytes != 4096 || *sink.memory[1].Bytes != 4096 || sink.memory[1].Action != "free" {
		t.Errorf("memory: %+v", sink.memory)
	}
}
