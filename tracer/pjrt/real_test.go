package pjrt

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// load has a process load a plugin, and call GetPjrtApi if it is told to go on.
func load(t *testing.T, plugin string) (pid int, goOn func()) {
	t.Helper()
	c := exec.Command("python3", "-c", `
import ctypes, sys
plugin = ctypes.CDLL(sys.argv[1])
print("loaded", flush=True)
sys.stdin.readline()
plugin.GetPjrtApi()
print("called", flush=True)
sys.stdin.readline()
`, plugin)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); c.Process.Kill(); c.Wait() })
	lines := bufio.NewReader(out)
	expect := func(want string) {
		if line, err := lines.ReadString('\n'); strings.TrimSpace(line) != want {
			t.Fatalf("the process that loads %s: %q, %v", plugin, line, err)
		}
	}
	expect("loaded")
	return c.Process.Pid, func() {
		in.Write([]byte("\n"))
		expect("called")
	}
}

// readOf reads the table of a plugin in a process.
func readOf(t *testing.T, e *elf.File, plugin string, pid int) (*Table, error) {
	t.Helper()
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := p.Libraries()
	if err != nil {
		t.Fatal(err)
	}
	code := func(address uint64) bool {
		for _, l := range libraries {
			for _, s := range l.Segments {
				if s.Executable && address >= s.Start && address < s.End {
					return true
				}
			}
		}
		return false
	}
	memory, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for _, l := range libraries {
		if filepath.Base(l.Path) == filepath.Base(plugin) {
			bias, ok := l.Bias(e)
			if !ok {
				t.Fatalf("%s has no bias", plugin)
			}
			return Read(e, Process{Memory: memory, Bias: bias, Code: code})
		}
	}
	t.Fatalf("pid %d has not mapped %s", pid, plugin)
	return nil, nil
}

// cudaPlugin is the CUDA plugin of JAX.
func cudaPlugin(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the real plugin: not in -short")
	}
	cache := os.Getenv("EBPFPROF_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache", "ebpfprof")
	}
	path := filepath.Join(cache, "pjrt", "xla_cuda_plugin.so")
	if _, err := os.Stat(path); err != nil {
		t.Skip("JAX's CUDA plugin is not there: run `make jax`")
	}
	return path
}

func TestTheRealCUDAPluginNamesItsFunctionsAsTheListDoes(t *testing.T) {
	path := cudaPlugin(t)
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	pid, call := load(t, path)
	if table, err := readOf(t, e, path, pid); err != ErrNotBuilt {
		t.Errorf("before GetPjrtApi was called: %v, %v, want %v", table, err, ErrNotBuilt)
	}
	call()
	table, err := readOf(t, e, path, pid)
	if err != nil {
		t.Fatal(err)
	}
	if table.Major != 0 || table.Minor < KnownMinor || len(table.Functions) < len(fields) || len(table.Outside) > 0 {
		t.Errorf("version %d.%d, %d functions of %d, outside %v", table.Major, table.Minor, len(table.Functions), len(fields), table.Outside)
	}
	names := e.IndexFunctions()
	checked := 0
	for _, f := range table.Functions {
		// _ZN4pjrt18PJRT_Buffer_DeleteEP23PJRT_Buffer_Delete_Args: whatever the
		// function is called, its argument says which one it is.
		symbol := names.Name(f.Address)
		if strings.Contains(symbol, f.Name+"_Args") {
			checked++
			continue
		}
		t.Errorf("%s is at %#x, which is %s", f.Name, f.Address, demangle.Short(symbol))
	}
	t.Logf("version %d.%d: %d functions, %d newer; %d of them take the argument that the list says, by the plugin's symbols", table.Major,
		table.Minor, len(table.Functions), table.Newer, checked)
}
