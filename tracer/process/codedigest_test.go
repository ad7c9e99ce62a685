package process

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

const digested = `55d0c0000000-55d0c0001000 r--p 00000000 fe:00 1001    /usr/bin/python3.11
55d0c0001000-55d0c0002000 r-xp 00001000 fe:00 1001    /usr/bin/python3.11
55d0c2000000-55d0c2021000 rw-p 00000000 00:00 0       [heap]
7f0000000000-7f0000001000 r-xp 00000000 fe:00 1002    /usr/lib/libc.so.6
`

// TestCodeDigestChangesWithWhatCanBeExecuted, and with nothing else: a heap that
// grows is no news.
func TestCodeDigestChangesWithWhatCanBeExecuted(t *testing.T) {
	heap := "55d0c2000000-55d0c2099000 rw-p 00000000 00:00 0       [heap]\n"
	for name, c := range map[string]struct {
		maps string
		same bool
	}{
		"itself":            {digested, true},
		"another heap":      {digested + heap, true},
		"another library":   {digested + "7f1000000000-7f1000001000 r-xp 00000000 fe:00 1003 /usr/lib/libm.so.6\n", false},
		"generated code":    {digested + "7f2000000000-7f2000001000 rwxp 00000000 00:00 0\n", false},
		"nothing":           {"", false},
		"a line cut short":  {digested + "7f30", true},
		"the last cut away": {digested[:len(digested)-20], false},
	} {
		if got := codeDigest([]byte(c.maps)) == codeDigest([]byte(digested)); got != c.same {
			t.Errorf("%s: the same is %v, want %v", name, got, c.same)
		}
	}
}

// TestCodeDigestOfALiveProcess: whichever way it is made, it changes with an
// executable mapping, and not with another.
func TestCodeDigestOfALiveProcess(t *testing.T) {
	p := &Process{PID: os.Getpid()}
	ways := map[string]func() uint64{"printed": func() uint64 {
		maps, err := p.readMaps()
		if err != nil {
			t.Fatal(err)
		}
		return codeDigest(maps)
	}}
	if _, ok := queryDigest(p.path("maps")); ok {
		ways["queried"] = func() uint64 {
			digest, ok := queryDigest(p.path("maps"))
			if !ok {
				t.Error("the query fails the second time")
			}
			return digest
		}
	}
	for name, digest := range ways {
		before := digest()
		data, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		withData := digest()
		if err := unix.Mprotect(data, unix.PROT_READ|unix.PROT_EXEC); err != nil {
			t.Fatal(err)
		}
		withCode := digest()
		if err := unix.Munmap(data); err != nil {
			t.Fatal(err)
		}
		if after := digest(); withData != before || withCode == before || after != before {
			t.Errorf("%s: %x, with data %x, with code %x, without %x", name, before, withData, withCode, after)
		}
	}
	t.Logf("%d ways", len(ways))
}
