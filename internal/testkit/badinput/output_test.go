package badinput

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestOutputThatCannotBeADataset(t *testing.T) {
	needKernel(t)
	job := openCL(t)
	full := t.TempDir()
	file := filepath.Join(full, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ words, path string }{
		{"is not empty", full},
		{"is not a directory", file},
		{"lies below a file", filepath.Join(file, "dataset")},
		{"cannot be written", "/proc/ebpfprof/dataset"},
	} {
		dir := t.TempDir()
		runIn(t, dir, ebpfprof, "attach", "--pid", pidOf(job), "--output", c.path).checkAlone(t, dir, failed, c.words)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("the file is now %q, %v", b, err)
	}
}

// smallDisk mounts a filesystem of so many bytes.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("kernel: no tmpfs can be mounted: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func TestAFullDiskEndsTheRecordingNotTheJob(t *testing.T) {
	needKernel(t)
	job, disk := mlp(t), smallDisk(t, "2m")
	dataset := filepath.Join(disk, "d")
	r := run(t, ebpfprof, "attach", "--pid", pidOf(job), "--budget", "off", "--rotate", "200ms", "--duration", "60s", "--output", dataset)
	r.check(t, failed, "no space left", "can be queried")
	if !job.alive() {
		t.Error("the job ended")
	}
	if n := rows(t, dataset, "SELECT count(*) FROM span"); n < 1000 {
		t.Errorf("%d spans can be read", n)
	}
	if n := rows(t, dataset, "SELECT count(*) FROM process"); n != 1 {
		t.Errorf("%d processes", n)
	}
}

func TestADiskThatIsFullFromTheStartHoldsNothing(t *testing.T) {
	needKernel(t)
	job, disk := openCL(t), smallDisk(t, "64k")
	fill, err := os.Create(filepath.Join(disk, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = fill.Write(make([]byte, 4096))
	}
	fill.Close()
	r := run(t, ebpfprof, "attach", "--pid", pidOf(job), "--duration", "2s", "--output", filepath.Join(disk, "d"))
	r.check(t, failed, "no space left", "nothing was recorded")
	if _, err := os.Stat(filepath.Join(disk, "d")); err == nil {
		t.Error("a half-made dataset was left behind")
	}
}
