package counter

import (
	"math"
	"os"
	"testing"
)

// sane fails on a value that no counter can have.
func sane(t *testing.T, name string, v float64) {
	t.Helper()
	if name == "" || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		t.Fatalf("%q = %v", name, v)
	}
}

func seed(f *testing.F, live string, more ...string) {
	f.Helper()
	if b, err := os.ReadFile(live); err == nil {
		f.Add(string(b))
	}
	for _, s := range more {
		f.Add(s)
	}
}

func FuzzStat(f *testing.F) {
	seed(f, "/proc/stat", "cpu0 1 2 3 4 5 6 7 8", "cpu0 1 2 3", "cpu99999999999999999999 1 2 3 4 5 6 7 8 9",
		"cpu1 -1 2 3 4 5 6 7 18446744073709551615 1")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range parseStat(text) {
			for _, v := range c.ticks {
				sane(t, c.cpu, v)
			}
		}
	})
}

func FuzzPressure(f *testing.F) {
	seed(f, "/proc/pressure/io", "some total=", "full total=1 total=2", "some avg10=0.00 total=99999999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range parsePressure(text) {
			sane(t, p.share, p.microseconds)
		}
	})
}

func FuzzKeyed(f *testing.F) {
	seed(f, "/proc/meminfo", "anon 1\nfile x\n\n: 5\n", "a 1e400", "NaN NaN\nInf Inf", "a 0x10")
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range parseKeyed(text) {
			sane(t, "value", v)
		}
	})
}

func FuzzDiskstats(f *testing.F) {
	seed(f, "/proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11", "8 0 sda 1 2 3 4 5 6 7 8 9 10 x", "8 0 sda 1")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range parseDiskstats(text) {
			if len(d.values) != len(columns) {
				t.Fatalf("%s has %d values", d.device, len(d.values))
			}
			for _, v := range d.values {
				sane(t, d.device, v)
			}
		}
	})
}

func FuzzNetDev(f *testing.F) {
	seed(f, "/proc/self/net/dev", "eth0:1 2 3 4 5 6 7 8 9 10 11", ":1 2 3 4 5 6 7 8 9 10 11", "a:b:1 2 3 4 5 6 7 8 9 10 11", "a|b: 1 2")
	f.Fuzz(func(t *testing.T, text string) {
		for _, i := range parseNetDev(text) {
			for _, v := range i.values {
				sane(t, i.device, v)
			}
		}
	})
}

func FuzzCgroup(f *testing.F) {
	seed(f, "/proc/self/cgroup", "0::/", "0::", "4:memory,cpu:/a:b\n", "x:memory:relative", "1:cpu:/../../x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, g := range parseCgroup(text) {
			if g.path == "" || g.path[0] != '/' || g.controller != "" && !v1Controllers[g.controller] {
				t.Fatalf("%+v", g)
			}
		}
	})
}
