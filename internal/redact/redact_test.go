package redact

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func TestPathsLoseTheirDirectories(t *testing.T) {
	for text, want := range map[string]string{
		"/home/alice/secret/train.py":                                      "train.py",
		"/home/alice/venv/lib/python3.11/site-packages/torch/nn/linear.py": "torch/nn/linear.py",
		"/usr/lib/x86_64-linux-gnu/libc.so.6":                              "/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/../home/alice/x.so":                                          "x.so",
		"[vdso]":                                                           "[vdso]",
		"secret/x.py":                                                      "x.py",
		"":                                                                 "",
	} {
		if got := Path(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"reading /home/alice/x.so: permission denied": "reading x.so: permission denied",
		"step (/data/a/b.csv, /data/c)":               "step (b.csv, c)",
		"12 KiB/s and/or more":                        "12 KiB/s and/or more",
		"file:///home/alice/x":                        "file:x",
		"path=/home/alice/x.":                         "path=x.",
		"aten::add":                                   "aten::add",
		"/proc/1/maps":                                "/proc/1/maps",
		"a;/home/alice/x.py;b":                        "a;x.py;b",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestTheCommandLineKeepsHowAndDropsWhat(t *testing.T) {
	for text, want := range map[string]string{
		"ebpfprof import SECRET/a.json /home/SECRET/b.json --redact":                                        "ebpfprof import a.json b.json --redact",
		"/home/alice/bin/ebpfprof attach --pid 7 --output /home/alice/d --level deep":                       "ebpfprof attach --pid 7 --output [redacted] --level deep",
		"ebpfprof run --output=/home/alice/d -o d -output=x --budget 5% -- python train.py --token=hunter2": "ebpfprof run --output=[redacted] -o [redacted] -output=[redacted] --budget 5% -- [redacted]",
	} {
		if got := strings.Join(CommandLine(strings.Fields(text)), " "); got != want {
			t.Errorf("%q\nbecomes %q\nwant    %q", text, got, want)
		}
	}
}

// fill sets every string that a value leads to.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(text)
		}
	case reflect.Pointer:
		if v.CanSet() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		if v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), text)
		}
	}
}

// texts are all strings that a value leads to, with the names of their fields.
func texts(v reflect.Value, name string) (all []string) {
	switch v.Kind() {
	case reflect.String:
		return []string{name + "=" + v.String()}
	case reflect.Pointer:
		if !v.IsNil() {
			return texts(v.Elem(), name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				all = append(all, texts(v.Field(i), name+"."+v.Type().Field(i).Name)...)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, texts(v.Index(i), name)...)
		}
	}
	return all
}

// catch is a Sink that keeps every string it is given.
type catch struct{ found []string }

func (c *catch) keep(row any) error {
	c.found = append(c.found, texts(reflect.ValueOf(row), reflect.TypeOf(row).String())...)
	return nil
}
func (c *catch) Spans(r []event.Span) error     { return c.keep(r) }
func (c *catch) Samples(r []event.Sample) error { return c.keep(r) }
func (c *catch) Stacks(r []event.Stack) error   { return c.keep(r) }
func (c *catch) Memory(r []event.Memory) error  { return c.keep(r) }
func (c *catch) Slices(r []event.Slice) error   { return c.keep(r) }
func (c *catch) OpenCalls(r event.OpenCalls) error {
	return errors.Join(c.keep(r.Calls), c.keep(r.Communicators))
}
func (c *catch) Flows(r []event.Flow) error       { return c.keep(r) }
func (c *catch) IO(r []event.IO) error            { return c.keep(r) }
func (c *catch) Counters(r []event.Counter) error { return c.keep(r) }
func (c *catch) Process(r event.Process) error    { return c.keep(r) }
func (c *catch) Thread(r event.Thread) error      { return c.keep(r) }
func (c *catch) Library(r event.Library) error    { return c.keep(r) }
func (c *catch) Probes(r []event.Probe) error     { return c.keep(r) }
func (c *catch) Warning(r event.Warning) error    { return c.keep(r) }

// words are strings of this tool's own: a job cannot put anything into them.
var words = []string{".Layer", ".Category", ".Runtime", ".Direction", ".NameSource", ".DeviceTimeMethod", ".State", ".Cause", ".Syscall",
	".Space", ".Level", ".Action", ".Kind", ".Method", ".Source", ".StackSource", ".Name", ".Unit", ".Status", ".BuildID", ".SiteCost", ".Role",
	".PythonVersion", ".Framework", ".FrameworkVersion", ".Shape.Dims", ".Shape.Types", ".Shape.Strides", ".Shape.Source", ".Shape.Bytes", ".Shape.Devices",
	".Group", ".Phase", ".Unit", ".Operation"}

// TestEveryTextOfEveryEventIsRedacted fails when an event gets a field that is not
// thought of here.
func TestEveryTextOfEveryEventIsRedacted(t *testing.T) {
	const secret = "at /home/alice/SECRET/name.py"
	c := new(catch)
	s := NewSink(c)
	sink := reflect.ValueOf(s)
	called := 0
	for i := range reflect.TypeFor[event.Sink]().NumMethod() {
		method := sink.MethodByName(reflect.TypeFor[event.Sink]().Method(i).Name)
		argument := reflect.New(method.Type().In(0)).Elem()
		fill(argument, secret)
		before := fmt.Sprint(texts(argument, ""))
		if err := method.Call([]reflect.Value{argument})[0]; !err.IsNil() {
			t.Fatal(err)
		}
		if after := fmt.Sprint(texts(argument, "")); after != before {
			t.Errorf("%v changed what it was given", method.Type())
		}
		called++
	}
	if called != 14 || len(c.found) < 40 {
		t.Fatalf("%d methods, %d texts", called, len(c.found))
	}
	for _, found := range c.found {
		name, text, _ := strings.Cut(found, "=")
		own := slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(name, w) }) &&
			!slices.Contains([]string{"[]event.Span.Call.Name", "event.Thread.Name", "[]event.Probe.Name", "event.Warning.Source", "[]event.OpenCall.Call.Name", "[]event.Communicator.Name"}, name)
		if !own && strings.Contains(text, "SECRET") {
			t.Errorf("%s is %q", name, text)
		}
	}
}

func TestRecordingAndProcessLeaveOutWhoAndWhere(t *testing.T) {
	r := Recording(event.Recording{Host: "alice-laptop", Kernel: "6.18"})
	if !r.Redacted || r.Host != "" || r.Kernel != "6.18" {
		t.Errorf("%+v", r)
	}
	job, group := "alice-secret-run", "/user.slice/user-1000.slice"
	p := Process(event.Process{Exe: "/home/alice/bin/python3", Command: "python3 --token hunter2", JobID: &job, Cgroup: &group})
	if p.Exe != "python3" || p.Command != "" || p.Cgroup != nil || !strings.HasPrefix(*p.JobID, "redacted-") || *p.JobID != Pseudonym(job) || job != "alice-secret-run" {
		t.Errorf("%+v", p)
	}
}
