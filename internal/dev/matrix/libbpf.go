package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A guest of this machine's processor, whose kernel loads the programs as they are compiled,
// loads objects by upstream's libbpf as well (internal/testkit/libbpf). What they are linked
// with is there if scripts/libbpf.sh has built it.

const libbpfTest = "libbpf.test"

// libbpfHere reports whether guests of an architecture have the test.
func libbpfHere(arch string) bool {
	return arch == runtime.GOARCH && exec.Command("scripts/libbpf.sh", "--check").Run() == nil
}

// buildLibbpf links the test statically: guests without Python have no C library.
func buildLibbpf(directory, arch string) error {
	environment, err := exec.Command("scripts/libbpf.sh", "--env").Output()
	if err != nil {
		return fmt.Errorf("asking scripts/libbpf.sh what to set: %w", err)
	}
	command := exec.Command("go", "test", "-c", "-tags", "static libbpf",
		"-ldflags", "-s -w -linkmode external -extldflags -static", "-o", filepath.Join(directory, libbpfTest+"-"+arch), "./tracer")
	command.Env = append(os.Environ(), strings.Fields(string(environment))...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the test of libbpf: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// libbpfCheck loads by libbpf: in the short form the objects that the verifier looks at for a
// moment only, in the long one all.
func libbpfCheck(long bool) check {
	objects := "/^(life|tasks|activities|ability)$"
	if long {
		objects = ""
	}
	return check{"libbpf", "cd /tmp && " + libbpfTest + " -test.v -test.run 'UpstreamLibbpfLoadsEveryObjectByItself" + objects + "'", readTests, false}
}
