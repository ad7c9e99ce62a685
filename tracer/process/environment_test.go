package process

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// A process that writes over the environment that it was started with, and one that gives itself a rank
// later, have it in the C library's own list.
func TestTheProcessesOwnEnvironmentHasItsRank(t *testing.T) {
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("no Python")
	}
	const title = `
import ctypes, os, sys
libc = ctypes.CDLL(None)
if "later" in sys.argv:
    os.environ.update(RANK="3", WORLD_SIZE="8", SECRET="hunter2")
else:
    # What setproctitle does: copies of the variables, and a title over the old ones.
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
    addresses = ctypes.cast(environ, ctypes.POINTER(ctypes.c_void_p))
    old, kept, n = [], [], 0
    while addresses[n]:
        old.append(addresses[n]); kept.append(ctypes.create_string_buffer(ctypes.string_at(addresses[n]))); n += 1
    for i in range(n):
        addresses[i] = ctypes.addressof(kept[i])
    for i in range(n):
        ctypes.memset(old[i], 0, len(kept[i].value))
print("ready", flush=True)
sys.stdin.read()`
	for _, c := range []struct {
		name, argument string
		environment    []string
	}{
		{"a title", "title", []string{"RANK=3", "WORLD_SIZE=8", "SECRET=hunter2", "LONG=" + strings.Repeat("x", 5000)}},
		{"set later", "later", []string{"HOME=/"}},
	} {
		job := exec.Command(python, "-c", title, c.argument)
		job.Env = c.environment
		in, err := job.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := job.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := job.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(); job.Wait() })
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		p, err := Open(job.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := p.Libraries()
		if err != nil {
			t.Fatal(err)
		}
		if p.Job.Rank != nil {
			t.Errorf("%s: rank %d of the environment that the kernel shows", c.name, *p.Job.Rank)
		}
		own, err := p.JobOfEnvironment(libraries)
		if err != nil || number(own.Rank) != "3" || number(own.WorldSize) != "8" || strings.Contains(fmt.Sprintf("%+v", own), "hunter2") {
			t.Errorf("%s: rank %s of %s, %v", c.name, number(own.Rank), number(own.WorldSize), err)
		}
	}
}

// memory is a process's in one piece from an address on.
type memory struct {
	from  int64
	bytes []byte
}

func (m memory) ReadAt(b []byte, at int64) (int, error) {
	if at < m.from || at >= m.from+int64(len(m.bytes)) {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(b, m.bytes[at-m.from:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// The list is the process's memory: it may lead anywhere, and need not end.
func TestAHostileEnvironmentEnds(t *testing.T) {
	const from = 0x10000
	words := func(all ...uint64) (b []byte) {
		for _, w := range all {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	endless := make([]uint64, 2*mostVariables)
	endless[0] = from + 8
	for i := 1; i < len(endless); i++ {
		endless[i] = from
	}
	for name, c := range map[string]struct {
		bytes []byte
		fails bool
		rank  string
	}{
		"not set yet":          {words(0), true, ""},
		"leads nowhere":        {words(1 << 40), true, ""},
		"the end of memory":    {words(from+8, 1<<41, 1<<42), true, ""},
		"endless":              {words(endless...), false, ""},
		"variables of nowhere": {append(words(from+8, 1<<40, 1<<63, from+40, 0), "RANK=7\x00"...), false, "7"},
		"without an end":       {append(words(from+8, from+24, 0), strings.Repeat("R", 4000)...), false, ""},
	} {
		kept, err := variablesAt(memory{from, c.bytes}, from)
		if (err != nil) != c.fails || kept["RANK"] != c.rank {
			t.Errorf("%s: %v, %v", name, kept, err)
		}
	}
}
