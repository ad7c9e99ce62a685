package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

var (
	load = symbolize.Frame{Kind: symbolize.Python, Function: "Data.__getitem__", File: "ddp.py", Line: 11, Offset: -1}
	loop = symbolize.Frame{Kind: symbolize.Python, Function: "main", File: "ddp.py", Line: 40, Offset: -1}
	mul  = symbolize.Frame{Kind: symbolize.Native, Function: "at::native::mm", Module: "libtorch_cpu.so", BuildID: "ab12", Offset: 0x1234}
)

// window is one of two processes: 30 ms on the CPU at one place, 5 ms of sleep at another.
func window(t *testing.T) *Window {
	t.Helper()
	w := NewWindow(100)
	stacks := []event.Stack{{ID: 7, Frames: []symbolize.Frame{mul, loop}}, {ID: 8, Frames: []symbolize.Frame{load, loop}}}
	if err := w.Write(&event.Batch{Stacks: stacks}); err != nil {
		t.Fatal(err)
	}
	stacks[0].Frames[0].Function = "used again by who called"
	rank := int32(3)
	_ = w.Write(&event.Batch{Processes: []event.Process{{PID: 40, Exe: "/usr/bin/python3", Rank: &rank}}})
	_ = w.Write(&event.Batch{Threads: []event.Thread{{PID: 40, TID: 41, Name: "pt_main"}}})
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).UnixNano()
	samples := []event.Sample{{TSNS: at, PID: 40, TID: 41, State: event.OnCPU, WeightNS: 10e6, StackID: new(int64(7))},
		{TSNS: at + 10e6, PID: 40, TID: 41, State: event.OnCPU, WeightNS: 20e6, StackID: new(int64(7))},
		{TSNS: at + 30e6, PID: 40, TID: 41, State: event.OffCPU, Cause: event.CauseSyscall, Syscall: "nanosleep", WeightNS: 5e6,
			StackID: new(int64(8))},
		{TSNS: at, PID: 44, TID: 44, State: event.OnCPU, WeightNS: 10e6}}
	if err := w.Write(&event.Batch{Samples: samples}); err != nil {
		t.Fatal(err)
	}
	return w
}

func request(t *testing.T, w *Window) []byte {
	t.Helper()
	packed, _, err := w.Request("llama", "node1", "1.0")
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestTheCollectorsOwnReaderFindsWhatWasSampled(t *testing.T) {
	all, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(unpack(t, request(t, window(t))))
	if err != nil {
		t.Fatal(err)
	}
	d := all.Dictionary()
	text := func(n int32) string { return d.StringTable().At(int(n)) }
	if n := all.ResourceProfiles().Len(); n != 2 || all.SampleCount() != 3 || all.ProfileCount() != 3 {
		t.Fatalf("%d processes, %d samples, %d profiles", n, all.SampleCount(), all.ProfileCount())
	}
	r := all.ResourceProfiles().At(0)
	for key, want := range map[string]any{"service.name": "llama", "host.name": "node1", "process.pid": int64(40), "ebpfprof.rank": int64(3),
		"process.executable.path": "/usr/bin/python3"} {
		if got := r.Resource().Attributes().AsRaw()[key]; got != want {
			t.Errorf("%s is %v, not %v", key, got, want)
		}
	}
	cpu, off := r.ScopeProfiles().At(0).Profiles().At(0), r.ScopeProfiles().At(0).Profiles().At(1)
	if text(cpu.SampleType().TypeStrindex()) != "cpu" || text(off.SampleType().TypeStrindex()) != "off_cpu" || cpu.Period() != 10e6 ||
		off.Period() != 0 ||
		cpu.DurationNano() != 35e6 || cpu.Time().AsTime().Hour() != 12 {
		t.Errorf("%s of period %d, %d ns, at %s", text(cpu.SampleType().TypeStrindex()), cpu.Period(), cpu.DurationNano(), cpu.Time())
	}
	for _, c := range []struct {
		of         pprofile.Profile
		value      int64
		stack      []string
		attributes map[string]any
	}{
		{cpu, 30e6, []string{"at::native::mm  libtorch_cpu.so native", "main ddp.py  cpython"}, map[string]any{"thread.name": "pt_main",
			"thread.id": int64(41)}},
		{off, 5e6, []string{"Data.__getitem__ ddp.py  cpython", "main ddp.py  cpython"},
			map[string]any{"thread.name": "pt_main", "thread.id": int64(41), "ebpfprof.cause": "syscall", "ebpfprof.syscall": "nanosleep"}},
	} {
		s := c.of.Samples().At(0)
		if got := s.Values().AsRaw(); len(got) != 1 || got[0] != c.value {
			t.Errorf("%v ns, not %d", got, c.value)
		}
		var stack []string
		for _, n := range d.StackTable().At(int(s.StackIndex())).LocationIndices().AsRaw() {
			l := d.LocationTable().At(int(n))
			f := d.FunctionTable().At(int(l.Lines().At(0).FunctionIndex()))
			kind, err := pprofile.FromAttributeIndices(d.AttributeTable(), l, d)
			if err != nil {
				t.Fatal(err)
			}
			stack = append(stack, strings.Join([]string{text(f.NameStrindex()), text(f.FilenameStrindex()),
				text(d.MappingTable().At(int(l.MappingIndex())).FilenameStrindex()), kind.AsRaw()["profile.frame.type"].(string)}, " "))
		}
		if !slices.Equal(stack, c.stack) {
			t.Errorf("%q, not %q", stack, c.stack)
		}
		got, err := pprofile.FromAttributeIndices(d.AttributeTable(), s, d)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range c.attributes {
			if got.AsRaw()[key] != want {
				t.Errorf("%s is %v, not %v", key, got.AsRaw()[key], want)
			}
		}
	}
	none := all.ResourceProfiles().At(1).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0)
	if none.StackIndex() != 0 || d.StackTable().At(0).LocationIndices().Len() != 0 {
		t.Error("a sample without a stack has one")
	}
}

// Version 1.10 gave the fields of Sample other numbers: an older reader would take values
// for attributes.
func TestSamplesHaveTheNumbersOfVersion110(t *testing.T) {
	field := func(message []byte, path ...protowire.Number) []byte {
		for _, want := range path {
			var found []byte
			each(message, func(n protowire.Number, value []byte, _ uint64) {
				if n == want && found == nil && value != nil {
					found = value
				}
			})
			if found == nil {
				t.Fatalf("no field %d of %v", want, path)
			}
			message = found
		}
		return message
	}
	// resource_profiles 1, scope_profiles 2, profiles 2, samples 2
	sample := field(unpack(t, request(t, window(t))), 1, 2, 2, 2)
	var numbers []protowire.Number
	each(sample, func(n protowire.Number, value []byte, varint uint64) {
		numbers = append(numbers, n)
		if n == 1 && varint == 0 {
			t.Error("no stack_index")
		}
		if n == 4 {
			if v, _ := protowire.ConsumeVarint(value); v != 30e6 {
				t.Errorf("values %d", v)
			}
		}
	})
	slices.Sort(numbers)
	if !slices.Equal(numbers, []protowire.Number{1, 2, 4}) {
		t.Errorf("fields %v: stack_index is 1, attribute_indices 2, values 4", numbers)
	}
}

func TestAWindowIsBoundedAndCountsWhatItLeavesOut(t *testing.T) {
	w := NewWindow(100)
	for i := range int32(mostSamples + 10) {
		_ = w.Write(&event.Batch{Samples: []event.Sample{{PID: 1, TID: i, State: event.OnCPU, WeightNS: 1}}})
	}
	_ = w.Write(&event.Batch{Samples: []event.Sample{{PID: 1, TID: 0, State: event.OnCPU, WeightNS: 1}, {PID: 1, State: event.OnCPU,
		WeightNS: 1, StackID: new(int64(5))}}})
	if w.Dropped() != 11 || len(w.samples) != mostSamples {
		t.Errorf("%d dropped, %d kept", w.Dropped(), len(w.samples))
	}
	if _, _, err := NewWindow(1).Request("", "", ""); err != ErrNothing {
		t.Errorf("an empty window: %v", err)
	}
}

// collector answers with a status and a body, and keeps what it was sent.
func collector(t *testing.T, status int, body []byte) (address string, got *http.Request) {
	got = &http.Request{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*got = *r
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// What a collector may take later is sent again; what it never takes is counted and not.
func TestOnlyWhatACollectorMayTakeLaterIsSentAgain(t *testing.T) {
	partial := protowire.AppendTag(nil, 1, protowire.BytesType)
	inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 2)
	inner = protowire.AppendString(protowire.AppendTag(inner, 2, protowire.BytesType), "too old")
	partial = protowire.AppendBytes(partial, inner)
	for _, c := range []struct {
		status  int
		body    []byte
		again   bool
		refused int64
		why     string
	}{
		{200, nil, false, 0, ""},
		{200, partial, false, 2, "too old"},
		{200, []byte("\xff\xff"), false, 0, ""},
		{302, nil, false, 1, "302"},
		{400, nil, false, 1, "400"},
		{404, nil, false, 1, "404"},
		{429, nil, true, 0, ""},
		{503, nil, true, 0, ""},
	} {
		address, got := collector(t, c.status, c.body)
		headers, err := Headers("x-scope-orgid=team%201")
		if err != nil {
			t.Fatal(err)
		}
		client := NewClient(func() string { return address }, headers)
		err = client.Put(t.Context(), "", request(t, window(t)))
		n, why := client.Refused()
		if (err != nil) != c.again || n != c.refused || !strings.Contains(why, c.why) {
			t.Errorf("%d: %v, %d refused (%s)", c.status, err, n, why)
		}
		if got.URL.Path != "/v1development/profiles" || got.Header.Get("Content-Encoding") != "gzip" ||
			got.Header.Get("X-Scope-Orgid") != "team 1" ||
			got.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s with %v", got.URL, got.Header)
		}
	}
	gone := NewClient(func() string { return "http://127.0.0.1:1" }, nil)
	if err := gone.Put(context.Background(), "", nil); err == nil {
		t.Error("nobody listens, and it was taken")
	}
	none := NewClient(func() string { return "" }, nil)
	if err := none.Put(context.Background(), "", nil); err != nil {
		t.Error(err)
	}
	if n, _ := none.Refused(); n != 1 {
		t.Errorf("%d", n)
	}
}

func TestAddressesAndHeadersAreLookedAt(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:4318":                "http://127.0.0.1:4318/v1development/profiles",
		"https://c.example.com/":               "https://c.example.com/v1development/profiles",
		"http://c/otlp/v1development/profiles": "http://c/otlp/v1development/profiles",
		"127.0.0.1:4318":                       "", "grpc://c:4317": "", "http://u:secret@c": "", "http://": "", "http://\x7f": "",
	} {
		if got, err := Endpoint(address); got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %q, %v", address, got, err)
		}
	}
	for _, bad := range []string{"secret", "a=%zz", "=secret", "a=%0d%0aHost: x"} {
		if _, err := Headers(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
