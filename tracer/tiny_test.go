package tracer

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog"
)

// tinyRuntime is all that a new runtime takes.
var tinyRuntime = catalog.Group{
	Name: "tiny", Tier: catalog.Anchor,
	Functions: []catalog.Function{
		tiny("tiny_kernel", "module", func(f *catalog.Function) {
			f.Effect, f.Text, f.TextArg = catalog.NamesKernel, catalog.CStringLong, 1
			f.Values = []catalog.Value{catalog.Out(catalog.FieldHandle, 0)}
		}),
		tiny("tiny_launch", "launch", func(f *catalog.Function) {
			f.Name = catalog.FromKernel
			f.Values = []catalog.Value{
				catalog.Reg(catalog.FieldStream, 0), catalog.Reg(catalog.FieldKernel, 1),
				catalog.Reg32(catalog.FieldWorkX, 2), catalog.Reg32(catalog.FieldBlockX, 3),
			}
		}),
		tiny("tiny_memory", "alloc", func(f *catalog.Function) {
			f.Values = []catalog.Value{catalog.Out(catalog.FieldAddress, 0), catalog.Reg(catalog.FieldBytes, 1)}
			f.Memory = &catalog.Memory{Space: "device", Level: "driver", Action: "alloc"}
		}),
		tiny("tiny_return", "free", func(f *catalog.Function) {
			f.Values = []catalog.Value{catalog.Reg(catalog.FieldAddress, 0)}
			f.Memory = &catalog.Memory{Space: "device", Level: "driver", Action: "free"}
		}),
	},
}

func tiny(symbol, category string, with func(*catalog.Function)) catalog.Function {
	f := catalog.Function{
		Library: "libtiny.so", Symbol: symbol, Exact: true, Layer: "runtime", Category: category, Runtime: "tiny",
		Label: symbol, Action: catalog.Span, End: catalog.Return, StatusOK: true,
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
	session, err := Open(Options{PIDs: []int{job.Process.Pid}, BufferBytes: 4 << 20, Budget: Unlimited, catalog: []catalog.Group{tinyRuntime}}, sink)
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
