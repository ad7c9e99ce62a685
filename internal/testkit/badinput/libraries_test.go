package badinput

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const openCLLibrary = "libOpenCL.so.1"

// copyLibrary copies the OpenCL loader to where a job finds it first.
func copyLibrary(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("ldd", native(t, "opencl")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[0] == openCLLibrary {
			to := filepath.Join(dir, openCLLibrary)
			copyFile(t, fields[2], to)
			return to
		}
	}
	t.Fatalf("no %s: %s", openCLLibrary, out)
	return ""
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

const kernelLaunches = "SELECT count(*) FROM span WHERE name = 'clEnqueueNDRangeKernel'"

func TestAttachWorksThoughTheLibraryIsDeleted(t *testing.T) {
	needKernel(t)
	dir, libraries := t.TempDir(), t.TempDir()
	library := copyLibrary(t, libraries)
	job := openCL(t, "LD_LIBRARY_PATH="+libraries)
	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	attach(t, dir, pidOf(job)).check(t, ok)
	dataset := filepath.Join(dir, "new", "dataset")
	if n := rows(t, dataset, kernelLaunches); n < 100 {
		t.Errorf("%d launches", n)
	}
	if n := rows(t, dataset, "SELECT count(*) FROM library WHERE deleted AND path = '"+library+"'"); n != 1 {
		t.Errorf("%d deleted libraries in the dataset", n)
	}
	if !job.alive() {
		t.Error("the job ended")
	}
}

func TestAttachWorksThoughTheLibraryIsReplaced(t *testing.T) {
	needKernel(t)
	dir, libraries := t.TempDir(), t.TempDir()
	library := copyLibrary(t, libraries)
	job := openCL(t, "LD_LIBRARY_PATH="+libraries)
	if err := os.Rename(copyLibrary(t, t.TempDir()), library); err != nil {
		t.Fatal(err)
	}
	attach(t, dir, pidOf(job)).check(t, ok)
	if n := rows(t, filepath.Join(dir, "new", "dataset"), kernelLaunches); n < 100 {
		t.Errorf("%d launches", n)
	}
}

func TestAttachWorksInAnotherMountAndPIDNamespace(t *testing.T) {
	needKernel(t)
	// The library lies on a mount that only the job's namespace has.
	libraries, original := t.TempDir(), copyLibrary(t, t.TempDir())
	script := "mount -t tmpfs none " + libraries + " && cp " + original + " " + libraries +
		" && LD_LIBRARY_PATH=" + libraries + " exec " + native(t, "opencl") + " 1000000000"
	job := start(t, nil, "unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script)
	job.until(t, "ready 1\n") // its pid in there
	pid := childOf(t, job.Process.Pid)
	dir := t.TempDir()
	attach(t, dir, pid).check(t, ok)
	dataset := filepath.Join(dir, "new", "dataset")
	if n := rows(t, dataset, kernelLaunches); n < 100 {
		t.Errorf("%d launches", n)
	}
	if n := rows(t, dataset, "SELECT ns_pid FROM process WHERE pid = "+pid); n != 1 {
		t.Errorf("its pid in its own namespace is 1, the dataset says %d", n)
	}
	if r := run(t, ebpfprof, "doctor", "--pid", pid); r.code != ok || !strings.Contains(r.stdout, "pid 1 in its own pid namespace") {
		t.Errorf("doctor: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// childOf is the pid of the only child of a process.
func childOf(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}
