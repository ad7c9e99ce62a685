package tracer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/hostile"
	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
	"github.com/ebpfprof/ebpfprof/tracer/probetable"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// attackGroups are the functions of the innocent job's library, and some that the
// hostile files claim to have.
func attackGroups() []spec.Group {
	groups := nativeGroup("libcallee-plain", spec.ExitSites, callees)
	return append(groups, spec.Group{Name: "hostile", Tier: spec.Anchor, Functions: []spec.Function{
		{Library: "libhostile", Symbol: "cuLaunchKernel", Exact: true, Layer: "native", Label: "launch", Action: spec.Span, End: spec.ExitSites},
		{Library: "libhostile", Symbol: "_ZN2at4_ops", Name: spec.FromOperator, Suffix: "4callE", Layer: "op", Action: spec.Span,
			End: spec.ExitSites},
	}})
}

// recordBeside records a hostile process and, beside it, one that nobody may
// disturb: its calls are all to be recorded. It returns what was warned of.
func recordBeside(t *testing.T, attacker *hostileJob) []Warning {
	t.Helper()
	alone.Do(func() { aloneTook, _ = recordNeighbour(t, nil) })
	took, warnings := recordNeighbour(t, attacker)
	// What the attack costs the tracer, the other job must not pay: its CPU time, which
	// other load of the machine does not change much, is that of a recording without.
	t.Logf("the other job took %s of CPU time, %s without the attack", took, aloneTook)
	if took > 4*aloneTook+100*time.Millisecond {
		t.Errorf("the other job took %s of CPU time for what takes %s without the attack", took, aloneTook)
	}
	return warnings
}

var (
	alone     sync.Once
	aloneTook time.Duration
)

// attachedTo waits until the probes of a library are in, or soon will be.
func (s *Session) attachedTo(t *testing.T, library string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if slices.ContainsFunc(s.probes.Table().All(), func(p *probetable.Probe) bool {
			return strings.HasPrefix(p.Planned.Function.Library,
				library)
		}) {
			time.Sleep(500 * time.Millisecond)
			return
		}
	}
	t.Fatalf("%s is not planned after a minute", library)
}

// recordNeighbour records a job, and the attacker if there is one, and returns the CPU
// time that the job took.
func recordNeighbour(t *testing.T, attacker *hostileJob) (took time.Duration, warnings []Warning) {
	t.Helper()
	job := exec.Command(filepath.Join(buildNative(t), "calls-plain"), "200", "wait")
	stdin, err := job.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := job.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	defer job.Process.Kill()
	lines := bufio.NewScanner(stdout)
	lines.Scan() // ready
	sink, pids := &recordingSink{}, []int{job.Process.Pid}
	if attacker != nil {
		pids = append([]int{attacker.Process.Pid}, pids...)
	}
	session, err := Open(t.Context(), Options{
		PIDs: pids, Follow: true, BufferBytes: 4 << 20, Frequency: 99, Budget: -1, catalog: attackGroups(),
	}, sink)
	if err != nil {
		t.Fatalf("the recording does not begin: %v", err)
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	session.attachedTo(t, "libcallee-plain") // on a busy machine that may take a while
	io.WriteString(stdin, "go\n")
	lines.Scan()
	var said struct{ Truth nativeTruth }
	if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
		t.Fatalf("the job said %q: %v", lines.Text(), err)
	}
	if err := job.Wait(); err != nil {
		t.Errorf("the job ended with %v", err)
	}
	time.Sleep(time.Second) // the hostile one is looked at meanwhile
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(maps, []byte{'\n'}); n > 8_000 {
		t.Errorf("the tracer has %d mappings", n)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the recording ended with %v", err)
	}
	counts := countSpans(sink.spans, StatusOK)
	if counts["callee_plain"] != said.Truth.Calls["callee_plain"] || counts["callee_plain"] == 0 {
		t.Errorf("%d calls of the other job were recorded, it made %d", counts["callee_plain"], said.Truth.Calls["callee_plain"])
	}
	return job.ProcessState.UserTime() + job.ProcessState.SystemTime(), sink.warnings
}

func warned(warnings []Warning, source string) bool {
	return slices.ContainsFunc(warnings, func(w Warning) bool { return strings.Contains(w.Source, source) })
}

// crowd starts a process of nobody's that maps files.
func crowd(t *testing.T, dir string, count int, patterns ...string) (j *hostileJob, mapped int) {
	t.Helper()
	program := install(t, filepath.Join(buildNative(t), "crowd"), filepath.Join(dir, "crowd"), 0)
	j = startAs(t, nobody, false, append([]string{program, strconv.Itoa(count)}, patterns...)...)
	mapped, err := strconv.Atoi(j.line(t))
	if err != nil || mapped == 0 {
		t.Fatalf("%d mapped: %v", mapped, err)
	}
	return j, mapped
}

func TestSparseFilesDoNotStopTheRecording(t *testing.T) {
	needKernel(t)
	dir := forAll(t)
	var files []string
	for name, file := range hostile.Sparse(15 << 30) {
		path := filepath.Join(dir, "libhostile-"+name+".so")
		if err := file.Write(path); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	attacker, _ := crowd(t, dir, 1, files...)
	if warnings := recordBeside(t, attacker); !warned(warnings, "libhostile-symtab.so") {
		t.Errorf("nothing is said of the files: %+v", warnings)
	}
}

// The recording begins, and the other job's calls are seen, long before the file is
// planned.
func TestAFileThatTakesLongToPlanDoesNotStopTheRecording(t *testing.T) {
	needKernel(t)
	dir := forAll(t)
	path := filepath.Join(dir, "libhostile.so")
	if err := hostile.Labyrinth().Write(path); err != nil {
		t.Fatal(err)
	}
	attacker, _ := crowd(t, dir, 1, path)
	recordBeside(t, attacker)
}

func TestThousandsOfFilesDoNotStopTheRecording(t *testing.T) {
	needKernel(t)
	dir := ramDisk(t, forAll(t), "files")
	const count = 65_400 // as many as a process may map, less a few
	contents := testelf.Tiny(t, "tiny.so")
	for i := range count {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("lib%d.so", i)), contents, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	attacker, _ := crowd(t, dir, count, filepath.Join(dir, "lib%d.so"))
	if warnings := recordBeside(t, attacker); !warned(warnings, "files_beyond_limit") {
		t.Errorf("nothing is said of the files: %d warnings", len(warnings))
	}
}

func TestLongMapsDoNotStopTheRecording(t *testing.T) {
	needKernel(t)
	dir := forAll(t)
	long := dir
	for range 14 {
		long = filepath.Join(long, strings.Repeat("x", 250))
	}
	if err := os.MkdirAll(long, 0o755); err != nil {
		t.Fatal(err)
	}
	file := install(t, filepath.Join("..", "internal", "testkit", "testelf", "testdata", "tiny.so"), filepath.Join(long, "lib.so"), nobody)
	attacker, mapped := crowd(t, dir, 20_000, file)
	p, err := process.Open(attacker.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if libraries, err := p.Libraries(); err != nil || len(libraries) == 0 {
		t.Errorf("%d libraries, %v", len(libraries), err)
	}
	if cut, _ := p.LeftOut(); !cut {
		t.Fatalf("%d mappings are read in whole", mapped)
	}
	if warnings := recordBeside(t, attacker); !warned(warnings, "maps_cut") {
		t.Errorf("nothing is said of the mappings: %+v", warnings)
	}
}

// Libraries under all the names that the tracer looks into, which their owner cuts
// short and writes again, again and again.
func TestLibrariesThatAreCutShortDoNotStopTheRecording(t *testing.T) {
	needKernel(t)
	dir := forAll(t)
	found, _ := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	if len(found) == 0 {
		t.Skip("no libc where Debian has it")
	}
	contents, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, name := range []string{"libhostile.so", "libpython3.11.so.1.0", "python3.11", "libc.so.6", "libpthread.so.0", "libamdhip64.so.6",
		"libcudart.so.12", "ld-linux-x86-64.so.2", "libtorch_cpu.so", "pjrt_c_api_gpu_plugin.so", "libother.so"} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], contents, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	attacker, _ := crowd(t, dir, 1, files...)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			path := files[i%len(files)]
			os.Truncate(path, 4096)
			os.WriteFile(path, contents, 0o755)
		}
	}()
	for range 3 {
		recordBeside(t, attacker)
	}
	close(stop)
	<-stopped
}
