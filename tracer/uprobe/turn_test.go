package uprobe

import (
	"sync"
	"testing"

	"github.com/cilium/ebpf"
)

// Two links of many sites that are taken out at once go one after the other: neither
// waits for the other at each site.
func TestLinksAreTakenOutOneAfterTheOther(t *testing.T) {
	pid, libc := job(t)
	how := How{PID: pid, Multi: true}
	if HaveMulti() != nil {
		t.Skip("this kernel has no uprobe.multi")
	}
	file, err := Open(libc)
	if err != nil {
		t.Fatal(err)
	}
	p, sites := program(t, how), someSites(t, libc, mostSites)
	half := len(sites.Offsets) / 2
	if half < 500 {
		t.Fatalf("libc has only %d functions", 2*half)
	}
	var links []shelteredLink
	for _, s := range []Sites{{Offsets: sites.Offsets[:half], Cookies: sites.Cookies[:half]}, {Offsets: sites.Offsets[half:],
		Cookies: sites.Cookies[half:]}} {
		more, err := Attach(file, p, s, how)
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, more[0].(shelteredLink))
	}
	if !anyProbed(t, pid, libc) {
		t.Fatal("nothing was probed")
	}
	var out sync.WaitGroup
	calls := make([]*call, len(links))
	for i, l := range links {
		out.Add(1)
		go func() {
			defer out.Done()
			closing, err := l.remove()
			if err != nil || len(closing) != 1 {
				t.Errorf("%d calls that close it: %v", len(closing), err)
				return
			}
			calls[i] = closing[0]
			if _, err := calls[i].wait(); err != nil {
				t.Error(err)
			}
		}()
	}
	out.Wait()
	if t.Failed() {
		return
	}
	if anyProbed(t, pid, libc) {
		t.Error("there are still probes")
	}
	// How often each was off its CPU because it waited: where the lock of the machine is
	// handed over at each site, that is once a site. Other tracers on this machine have the
	// same lock: a link that is taken out alone waits for those.
	alone := takenOutAlone(t, file, p, Sites{Offsets: sites.Offsets[:half], Cookies: sites.Cookies[:half]}, how)
	for i, c := range calls {
		if n := c.usage.Nvcsw; n > 2*alone+int64(half)/10 {
			t.Errorf("link %d of %d sites: its removal waited %d times, alone %d times", i, half, n, alone)
		}
	}
}

// takenOutAlone is how often the removal of a link waits while no other one is removed here.
func takenOutAlone(t *testing.T, file *File, p *ebpf.Program, sites Sites, how How) int64 {
	t.Helper()
	links, err := Attach(file, p, sites, how)
	if err != nil {
		t.Fatal(err)
	}
	closing, err := links[0].(shelteredLink).remove()
	if err != nil || len(closing) != 1 {
		t.Fatalf("%d calls that close it: %v", len(closing), err)
	}
	if _, err := closing[0].wait(); err != nil {
		t.Fatal(err)
	}
	return closing[0].usage.Nvcsw
}
