package badinput

import (
	"os"
	"path/filepath"
	"testing"
)

func TestProbesOfAFileThatIsNoLibrary(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(t.TempDir(), "libtorch_cpu.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	runIn(t, dir, ebpfprof, "probes", "--library", text).checkAlone(t, dir, failed, "not a library")
	runIn(t, dir, ebpfprof, "probes", "--library", text+".missing").checkAlone(t, dir, failed, "there is no file")
	runIn(t, dir, ebpfprof, "probes", "--library", ebpfprof).checkAlone(t, dir, failed, "no function of the catalog")
}

func TestCommandsOnWhatIsNoDataset(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dataset := range []string{file, file + ".missing", t.TempDir()} {
		runIn(t, dir, ebpfprof, "query", dataset, "SELECT 1").checkAlone(t, dir, failed, dataset)
		runIn(t, dir, ebpfprof, "stacks", dataset).checkAlone(t, dir, failed, dataset)
		runIn(t, dir, ebpfprof, "symbolize", dataset, "--debug-dir", "/").checkAlone(t, dir, failed, dataset)
	}
}
