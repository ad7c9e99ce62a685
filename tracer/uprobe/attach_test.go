package uprobe

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// job is a shell that waits, and the libc that it has mapped.
func job(t testing.TB) (pid int, libc string) {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("kernel: needs root, not in -short")
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("/bin/sh", "-c", "read line")
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); shell.Wait() })
	return shell.Process.Pid, libcOf(t, shell.Process.Pid)
}

// libcOf is the libc that a process that starts has mapped.
func libcOf(t testing.TB, pid int) string {
	t.Helper()
	for range 200 {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(maps)) {
			if words := strings.Fields(line); len(words) == 6 && strings.HasPrefix(filepath.Base(words[5]), "libc.so") {
				return words[5]
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Skip("this system's shell has no libc")
	return ""
}

// program does nothing.
func program(t testing.TB, how How) *ebpf.Program {
	t.Helper()
	spec := &ebpf.ProgramSpec{Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}}
	if !how.Multi {
		Fit(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"nothing": spec}})
	}
	p, err := ebpf.NewProgram(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestSymbolsAreFoundWhereTheFileHasThem(t *testing.T) {
	_, libc := job(t)
	file, err := elf.Open(libc)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sites, err := Symbols(libc, "getppid")
	if err != nil {
		t.Fatal(err)
	}
	text := file.Section(".text")
	if len(sites.Offsets) != 1 || len(sites.Cookies) != 1 || sites.Offsets[0] < text.Offset || sites.Offsets[0] >= text.Offset+text.Size {
		t.Errorf("getppid is at %#x, outside of .text, %#x and %#x bytes", sites.Offsets, text.Offset, text.Size)
	}
	if _, err := Symbols(libc, "nowhere"); err == nil {
		t.Error("a function that is not there was found")
	}
}

// Both ways attach as many sites as they are given, and the second names the site
// that cannot be probed.
func TestBothWaysAttachEachSite(t *testing.T) {
	pid, libc := job(t)
	file, err := Open(libc)
	if err != nil {
		t.Fatal(err)
	}
	sites, err := Symbols(libc, "getppid", "getpid", "malloc")
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []How{{PID: pid, Multi: true}, {PID: pid}, {PID: pid, Return: true}} {
		if how.Multi && errors.Is(HaveMulti(), ebpf.ErrNotSupported) {
			continue
		}
		links, err := Attach(file, program(t, how), sites, how)
		want := len(sites.Offsets)
		if how.Multi {
			want = 1
		}
		if err != nil || len(links) != want {
			t.Errorf("%+v: %d links (%v), want %d", how, len(links), err, want)
		}
		closeAll(links)
	}
	sites.Add(1<<40, 0) // behind the end of the file
	links, err := Attach(file, program(t, How{}), sites, How{PID: pid})
	if err == nil || !strings.Contains(err.Error(), "0x10000000000") || len(links) != 3 {
		t.Errorf("%d links (%v), want three, and an error that names the fourth site", len(links), err)
	}
	closeAll(links)
}

func closeAll(links []link.Link) {
	for _, l := range links {
		l.Close()
	}
}

// BenchmarkSites is what a site costs to put in and to take out, of some hundreds in a
// process: alone (perf events one after the other), beside each other, as one link.
func BenchmarkSites(b *testing.B) {
	const sitesEach = 200
	pid, libc := job(b)
	file, err := Open(libc)
	if err != nil {
		b.Fatal(err)
	}
	sites := someSites(b, libc, sitesEach)
	for _, way := range []struct {
		name string
		How
		atOnce int
	}{{"perf events", How{PID: pid}, 1}, {"perf events, 32 closed at once", How{PID: pid}, 32},
		{"uprobe.multi", How{PID: pid, Multi: true}, 1}} {
		b.Run(way.name, func(b *testing.B) {
			if way.Multi && HaveMulti() != nil {
				b.Skip("this kernel has no uprobe.multi")
			}
			p := program(b, way.How)
			var in, out time.Duration
			for b.Loop() {
				began := time.Now()
				links, err := Attach(file, p, sites, way.How)
				in += time.Since(began)
				began = time.Now()
				var group sync.WaitGroup
				slots := make(chan struct{}, way.atOnce)
				for _, l := range links {
					slots <- struct{}{}
					group.Go(func() { l.Close(); <-slots })
				}
				group.Wait()
				out += time.Since(began)
				if err != nil {
					b.Fatal(err)
				}
			}
			each := float64(b.N) * float64(len(sites.Offsets)) * float64(time.Millisecond)
			b.ReportMetric(float64(in)/each, "ms/attach")
			b.ReportMetric(float64(out)/each, "ms/detach")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// mostSites is how many there are before the first that the kernel refuses (a first
// instruction that it can't single-step), which would undo the whole link.
const mostSites = 1500

// someSites are the entries of functions of a library, as many as asked for.
func someSites(t testing.TB, path string, n int) (sites Sites) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for _, s := range symbols {
		offset, ok := fileOffset(file, s.Value)
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF && ok && !seen[offset] && len(seen) < n {
			seen[offset] = true
			sites.Add(offset, 0)
		}
	}
	return sites
}
