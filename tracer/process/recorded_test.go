package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// recording is a proc filesystem made for a test.
type recording struct {
	t    *testing.T
	root string
}

func newRecording(t *testing.T) recording {
	r := recording{t, t.TempDir()}
	r.file("stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n")
	return r
}

func (r recording) fs() FS { return FS{Root: r.root} }

func (r recording) file(path, contents string) {
	r.t.Helper()
	full := filepath.Join(r.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(contents), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r recording) link(path, target string) {
	r.t.Helper()
	full := filepath.Join(r.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(target, full); err != nil {
		r.t.Fatal(err)
	}
}

func statLine(pid int, comm string, state byte, parent int, flags uint64) string {
	return strconv.Itoa(pid) + " (" + comm + ") " + string(state) + " " + strconv.Itoa(parent) +
		" 1 1 0 -1 " + strconv.FormatUint(flags, 10) + " 0 0 0 0 0 0 0 0 20 0 1 0 4217 0 0 0 4194304\n"
}

// process records a running program. What its /proc/PID/exe leads to is an ELF
// header without segments: it names no loader, so the maps decide.
func (r recording) process(pid int, change func(dir string)) {
	r.t.Helper()
	dir := strconv.Itoa(pid)
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	header[16], header[18] = 2, 62 // an executable, x86-64
	r.file(dir+"-program", string(header))
	r.file(dir+"/stat", statLine(pid, "pt_main (x) thr", 'S', 1, 0x400000))
	r.file(dir+"/status", "Name:\tx\nNSpid:\t4711\t12\n")
	r.file(dir+"/cmdline", "python\x00train.py\x00--lr\x000.1\x00")
	r.file(dir+"/cgroup", "0::/system.slice/docker-"+strings.Repeat("ab", 32)+".scope\n")
	r.file(dir+"/environ", "RANK=0\x00WORLD_SIZE=8\x00LOCAL_RANK=0\x00")
	r.file(dir+"/maps", twoLibraries)
	r.link(dir+"/exe", filepath.Join(r.root, dir+"-program"))
	r.link(dir+"/ns/pid", "pid:[4026532301]")
	change(filepath.Join(r.root, dir))
}

const twoLibraries = `400000-401000 r--p 00000000 fe:00 10                         /usr/bin/python3.11
401000-500000 r-xp 00001000 fe:00 10                         /usr/bin/python3.11
600000-610000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000010000 r--p 00000000 fe:00 4294967299     /opt/with space/a\012b.so (deleted)
7f0000010000-7f0000030000 r-xp 00010000 fe:00 4294967299     /opt/with space/a\012b.so (deleted)
7f0000030000-7f0000031000 rw-p 0002f000 fe:00 4294967299     /opt/with space/a\012b.so (deleted)
7f0000040000-7f0000050000 r--s 00000000 103:05 99             /data/train.bin
7ffff7fc0000-7ffff7fc1000 r-xp 00000000 00:00 0              [vdso]
`

func TestAProcessInTheMiddleOfAnExecIsWaitedFor(t *testing.T) {
	r := newRecording(t)
	r.process(4711, func(string) {})
	whole := statLine(4711, "x", 'S', 1, 0)
	r.file("4711/stat", strings.Replace(whole, " 4194304\n", " 0\n", 1))
	r.file("4711/environ", "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(20 * time.Millisecond)
		r.file("4711/environ", "RANK=3\x00")
		r.file("4711/stat.new", whole)
		if err := os.Rename(filepath.Join(r.root, "4711/stat.new"), filepath.Join(r.root, "4711/stat")); err != nil {
			t.Error(err)
		}
	}()
	p, err := r.fs().Open(4711)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	if p.Job.Rank == nil || *p.Job.Rank != 3 {
		t.Errorf("opened before the exec was over: %+v", p.Job)
	}
}

func TestARecordedProcessIsReadWhole(t *testing.T) {
	r := newRecording(t)
	r.process(4711, func(string) {})
	p, err := r.fs().Open(4711)
	if err != nil {
		t.Fatal(err)
	}
	if p.Comm != "pt_main (x) thr" || p.ParentPID != 1 || p.Command != "python train.py --lr 0.1" {
		t.Errorf("comm %q, parent %d, command %q", p.Comm, p.ParentPID, p.Command)
	}
	if p.StartTicks != 4217 || p.StartedNS != 1700000000e9+42170e6 {
		t.Errorf("start %d ticks, %d ns", p.StartTicks, p.StartedNS)
	}
	if p.NSPID == nil || *p.NSPID != 12 || p.PIDNamespace != 4026532301 {
		t.Errorf("ns pid %v, namespace %d", p.NSPID, p.PIDNamespace)
	}
	if p.ContainerID != strings.Repeat("ab", 32) || p.Cgroup != "/system.slice/docker-"+p.ContainerID+".scope" {
		t.Errorf("container %q, cgroup %q", p.ContainerID, p.Cgroup)
	}
	if p.Job.Rank == nil || *p.Job.Rank != 0 || p.Job.RankFrom != "RANK" {
		t.Errorf("rank 0 is lost: %+v", p.Job)
	}
	if !p.Alive() {
		t.Error("not alive")
	}
	r.file("4711/stat", strings.Replace(statLine(4711, "x", 'S', 1, 0), " 4217 ", " 4218 ", 1))
	if p.Alive() {
		t.Error("another process with the same pid is taken for it")
	}
}

func TestWhatCannotBeTracedSaysWhy(t *testing.T) {
	write := func(t *testing.T, path, contents string) {
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte(contents), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// program changes a byte in the header of the program.
	program := func(t *testing.T, dir string, index int, value byte) {
		header, err := os.ReadFile(dir + "/exe")
		if err != nil {
			t.Fatal(err)
		}
		header[index] = value
		write(t, dir+"-program", string(header))
	}
	for _, c := range []struct {
		claim  string
		change func(t *testing.T, dir string)
		want   error
		says   string
	}{
		{"a kernel thread", func(t *testing.T, dir string) {
			write(t, dir+"/stat", statLine(7, "kworker/0:1", 'I', 2, 0x4208060|0x200000))
		}, ErrKernelThread, "pid 7 is a kernel thread: it runs no user code that could be probed"},
		{"a zombie", func(t *testing.T, dir string) { write(t, dir+"/stat", statLine(7, "x", 'Z', 1, 0)) },
			ErrExited, "pid 7 exited: there is nothing left to attach to"},
		{"a pid that is gone", func(t *testing.T, dir string) { os.RemoveAll(dir) },
			ErrNotFound, "there is no process with pid 7: take a pid from ps, in this pid namespace"},
		{"one that goes while it is read", func(t *testing.T, dir string) { os.Remove(dir + "/cmdline") },
			ErrExited, "pid 7 exited: there is nothing left to attach to"},
		{"a 32-bit program", func(t *testing.T, dir string) { program(t, dir, 4, 1) },
			Err32Bit, "pid 7 runs a 32-bit program: only 64-bit x86-64 and arm64 programs can be probed"},
		{"another machine's program", func(t *testing.T, dir string) { program(t, dir, 18, 22) },
			ErrUnsupported, "pid 7 runs a program that is no ELF file of x86-64 or arm64: it cannot be probed"},
		{"a static program", func(t *testing.T, dir string) {
			write(t, dir+"/maps", strings.Join(strings.SplitAfter(twoLibraries, "\n")[:3], ""))
		}, ErrStatic, "pid 7 runs a static program: it has no libraries that could be probed"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			r := newRecording(t)
			r.process(7, func(dir string) { c.change(t, dir) })
			_, err := r.fs().Open(7)
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if err.Error() != c.says {
				t.Errorf("says %q, want %q", err, c.says)
			}
			var e *Error
			if !errors.As(err, &e) || e.PID != 7 {
				t.Errorf("no *Error with the pid: %#v", err)
			}
		})
	}
}

func TestLibrariesAreFilesMappedExecutable(t *testing.T) {
	libraries, err := parseLibraries([]byte(twoLibraries))
	if err != nil {
		t.Fatal(err)
	}
	if len(libraries) != 2 {
		t.Fatalf("%d libraries", len(libraries))
	}
	l := libraries[1]
	if l.Path != "/opt/with space/a\nb.so" || !l.Deleted || l.Inode != 4294967299 || l.Device.String() != "fe:00" || len(l.Segments) != 3 {
		t.Errorf("%+v", l)
	}
	if libraries[0].Deleted || libraries[0].Name() != "python3.11" {
		t.Errorf("%+v", libraries[0])
	}
	for _, c := range []struct {
		address, offset uint64
		inside          bool
	}{
		{0x7f0000000000, 0, true}, {0x7f0000010000, 0x10000, true}, {0x7f000002ffff, 0x2ffff, true},
		{0x7f0000031000, 0, false}, {0x401000, 0, false},
	} {
		offset, ok := l.FileOffset(c.address)
		if ok != c.inside || offset != c.offset {
			t.Errorf("FileOffset(%#x) = %#x, %v", c.address, offset, ok)
		}
		if back, ok := l.Address(c.offset); c.inside && (!ok || back != c.address) {
			t.Errorf("Address(%#x) = %#x, %v, want %#x", c.offset, back, ok, c.address)
		}
	}
	// A page that two segments share belongs to the code.
	if address, _ := l.Address(0x2f123); address != 0x7f000002f123 {
		t.Errorf("Address of a shared page = %#x", address)
	}
}

func TestDamagedMapsAreAnError(t *testing.T) {
	for _, line := range []string{
		"400000 r-xp 00000000 fe:00 10 /x", "400000-401000", "zz-401000 r-xp 00000000 fe:00 10 /x",
		"401000-400000 r-xp 00000000 fe:00 10 /x", "400000-401000 r-xp 00000000 fe 10 /x", "\x00",
	} {
		if l, err := parseLibraries([]byte(line + "\n")); err == nil {
			t.Errorf("%q is taken for %+v", line, l)
		}
	}
}

func FuzzMaps(f *testing.F) {
	f.Add([]byte(twoLibraries))
	f.Fuzz(func(t *testing.T, maps []byte) {
		libraries, err := parseLibraries(maps)
		if err != nil {
			return
		}
		for _, l := range libraries {
			for _, s := range l.Segments {
				if s.End < s.Start {
					t.Fatalf("segment %+v", s)
				}
				l.FileOffset(s.Start)
				l.Address(s.FileOffset)
			}
		}
	})
}

func FuzzStat(f *testing.F) {
	f.Add([]byte(statLine(7, "a b) c", 'R', 1, 0)))
	f.Fuzz(func(t *testing.T, line []byte) {
		if s, err := parseStat(line); err == nil && s.state == 'Z' && !s.exited() {
			t.Error("a zombie counts as running")
		}
		parseNSPID(line)
		parseCgroup(line)
		quotedVersion(line)
		versionFromStrings(versionStrings(line, 0, "3.11"), "3.11", func(uint64) bool { return false })
		allowed(line)
	})
}

func TestChildrenAreAllDescendants(t *testing.T) {
	r := newRecording(t)
	for pid, parent := range map[int]int{1: 0, 10: 1, 11: 10, 12: 10, 13: 12, 14: 13, 20: 1} {
		r.file(strconv.Itoa(pid)+"/stat", statLine(pid, "x", 'S', parent, 0))
	}
	r.file("15/stat", statLine(15, "x", 'Z', 10, 0))
	got, err := r.fs().Children(10)
	if want := []int{11, 12, 13, 14}; err != nil || len(got) != 4 || got[0] != want[0] || got[3] != want[3] {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := r.fs().Children(20); err != nil || len(got) != 0 {
		t.Errorf("children of a childless process: %v, %v", got, err)
	}
}

func TestMappersAreThoseThatExecuteTheFile(t *testing.T) {
	r := newRecording(t)
	r.file("10/maps", twoLibraries)
	r.file("11/maps", "7f0000000000-7f0000010000 r--p 00000000 fe:00 10 /usr/bin/python3.11\n")
	r.file("12/maps", "7f0000000000-7f0000010000 r-xp 00000000 fe:00 100 /usr/bin/python3.11\n")
	r.file("13/maps", "7f0000000000-7f0000010000 r-xp 00000000 fe:01 10 /usr/bin/python3.11\n")
	r.file("14/maps", "")
	got, err := r.fs().Mappers(Device{0xfe, 0}, 10)
	if err != nil || len(got) != 1 || got[0] != 10 {
		t.Errorf("%v, %v, want [10]", got, err)
	}
}

func TestIDIsStableAndNeverNegative(t *testing.T) {
	// The number is in datasets already: it must not change.
	if got := ID("node7", 4711, 4217); got != 2894679194604175509 {
		t.Errorf("ID = %d", got)
	}
	seen := map[int64]bool{}
	for pid := range 1000 {
		for _, host := range []string{"a", "b"} {
			id := ID(host, pid, 7)
			if id < 0 || seen[id] {
				t.Fatalf("ID(%q, %d) = %d", host, pid, id)
			}
			seen[id] = true
		}
	}
}

func TestBiasIsWhatTheLoaderAdded(t *testing.T) {
	l := Library{Segments: []Segment{{0x10000, 0x11000, 0, false}, {0x11000, 0x20000, 0x1000, true}}}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	address, offset, ok := e.FirstCode()
	if !ok {
		t.Fatal("no code")
	}
	got, ok := l.Bias(e)
	if want := 0x10000 + offset - address; ok != (offset >= 0x1000 && offset < 0x10000) || ok && got != want {
		t.Errorf("bias %#x, %v, want %#x", got, ok, want)
	}
}

// FuzzPythonVersion: a file that passes for an interpreter's.
func FuzzPythonVersion(f *testing.F) {
	contents := testelf.Tiny(f, "tiny.so")
	f.Add(contents, "3.11")
	f.Fuzz(func(t *testing.T, contents []byte, minor string) {
		file, err := elf.New(bytes.NewReader(contents))
		if err != nil {
			return
		}
		if version, from, _ := pythonVersion(file, minor, maxConstants); (version == "") != (from == "") && minor != "" {
			t.Fatalf("version %q from %q", version, from)
		}
	})
}

// FuzzCode: the mappings that walks are told of lie as the kernel says they do.
func FuzzCode(f *testing.F) {
	f.Add([]byte(twoLibraries))
	f.Fuzz(func(t *testing.T, maps []byte) {
		libraries, err := parseLibraries(maps)
		if err != nil {
			return
		}
		code, err := parseCode(maps, libraries)
		if err != nil {
			return
		}
		for _, c := range code {
			if c.End < c.Start {
				t.Fatalf("%+v", c)
			}
		}
		codeDigest(maps)
		mapsExecutable(maps, []byte(" fe:00 10 "))
	})
}
