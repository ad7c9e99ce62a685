package redact

import (
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
		"ebpfprof import SECRET/a.json " +
			"/home/SECRET/b.json --redact": "ebpfprof import a.json b.json --redact",
		"/home/alice/bin/ebpfprof attach --pid 7 --output /home/alice/d --level deep": "ebpfprof attach --pid 7 --output " +
			"[redacted] --level deep",
		"ebpfprof attach --command model_x.py --container=0123 --wait": "ebpfprof attach --command " +
			"[redacted] --container=[redacted] --wait",
		"ebpfprof run --output=/home/alice/d -o d -output=x --budget 5% -- python train.py --token=hunter2": "ebpfprof run --output=[redacted] " +
			"-o [redacted] -output=[redacted] --budget 5% -- [redacted]",
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

// catch is a Sink that keeps every string it is given, with the names of table and field.
type catch struct{ found []string }

func (c *catch) Write(b *event.Batch) error {
	c.found = append(c.found, texts(reflect.ValueOf(*b), "")...)
	return nil
}

// words are strings of this tool's own: a job cannot put anything into them.
var words = []string{".Layer", ".Category", ".Runtime", ".Direction", ".NameSource", ".DeviceTimeMethod", ".State", ".Cause", ".Syscall",
	".Space", ".Level", ".Action", ".Kind", ".Method", ".Source", ".StackSource", ".Name", ".Unit", ".Status", ".BuildID", ".SiteCost",
	".Role",
	".PythonVersion", ".Framework", ".FrameworkVersion", ".Shape.Dims", ".Shape.Types", ".Shape.Strides", ".Shape.Source", ".Shape.Bytes",
	".Shape.Devices",
	".Group", ".Phase", ".Unit", ".Operation"}

// TestEveryTextOfEveryEventIsRedacted fails when an event gets a field that is not
// thought of here.
func TestEveryTextOfEveryEventIsRedacted(t *testing.T) {
	const secret = "at /home/alice/SECRET/name.py"
	c := new(catch)
	s := NewSink(c)
	batch := reflect.New(reflect.TypeFor[event.Batch]()).Elem()
	fill(batch, secret)
	before := fmt.Sprint(texts(batch, ""))
	if err := s.Write(batch.Addr().Interface().(*event.Batch)); err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprint(texts(batch, "")); after != before {
		t.Error("the batch is changed")
	}
	for i := range batch.NumField() {
		if batch.Field(i).Len() != 1 {
			t.Fatalf("%s has no row", batch.Type().Field(i).Name)
		}
	}
	if len(c.found) < 80 {
		t.Fatalf("%d texts", len(c.found))
	}
	for _, found := range c.found {
		name, text, _ := strings.Cut(found, "=")
		own := slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(name, w) }) &&
			!slices.Contains([]string{".Spans.Call.Name", ".Threads.Name", ".Probes.Name", ".Warnings.Source", ".OpenCalls.Calls.Call.Name",
				".OpenCalls.Communicators.Name"}, name)
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
	if p.Exe != "python3" || p.Command != "" || p.Cgroup != nil || !strings.HasPrefix(*p.JobID, "redacted-") || *p.JobID != Pseudonym(job) ||
		job != "alice-secret-run" {
		t.Errorf("%+v", p)
	}
}
