// Command release makes what is handed out of the two programs: deb and rpm packages, the agent's container image as an OCI
// layout, the Helm chart, lists of what is in each program (CycloneDX), and the sums of all of it. Equal programs make equal files.
//
//	go run ./internal/dev/release -program bin/manylinux/ebpfprof-x86_64 -agent bin/ebpfprof-agent -arch amd64 -version v0.3.0 -o bin/release
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	var r release
	flag.StringVar(&r.program, "program", "", "`FILE` of ebpfprof; without it there is the agent's image alone")
	flag.StringVar(&r.agent, "agent", "", "`FILE` of ebpfprof-agent")
	flag.StringVar(&r.arch, "arch", "amd64", "`ARCH` of both, as Go calls it")
	flag.StringVar(&r.version, "version", "", "`VERSION`, as git describes it")
	flag.StringVar(&r.nfpm, "nfpm", "nfpm", "`FILE` of nfpm")
	flag.StringVar(&r.libraries, "libraries", "/", "root `DIR` of the image's C library")
	flag.StringVar(&r.to, "o", "", "`DIR` to write to")
	most := flag.Int64("most", 40, "`MIB` that the image may have")
	flag.Parse()
	if r.agent == "" || r.version == "" || r.to == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "release: -agent, -version and -o are needed")
		os.Exit(2)
	}
	if err := r.make(*most << 20); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type release struct {
	program, agent  string
	arch, version   string
	nfpm, libraries string
	to              string
}

func (r release) make(most int64) error {
	if err := os.MkdirAll(r.to, 0o755); err != nil {
		return err
	}
	if r.program == "" {
		return r.image(most)
	}
	for name, program := range map[string]string{"ebpfprof": r.program, "ebpfprof-agent": r.agent} {
		if err := writeBOM(filepath.Join(r.to, fmt.Sprintf("%s-%s.cdx.json", name, r.arch)), name, r.version, program); err != nil {
			return fmt.Errorf("listing what is in %s: %w", program, err)
		}
	}
	if err := r.image(most); err != nil {
		return err
	}
	if _, err := r.writeChart("deploy/helm/ebpfprof-agent"); err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	if err := r.packages(); err != nil {
		return err
	}
	return writeSums(r.to)
}

func (r release) image(most int64) error {
	image := filepath.Join(r.to, fmt.Sprintf("ebpfprof-agent-%s.oci.tar", r.arch))
	size, err := r.writeImage(image)
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	if size > most {
		return fmt.Errorf("%s has %d bytes, more than %d", image, size, most)
	}
	return nil
}

// packages stages the files of deb and rpm and has nfpm pack them.
func (r release) packages() error {
	stage, err := os.MkdirTemp("", "ebpfprof-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := r.stage(stage); err != nil {
		return fmt.Errorf("staging the packages: %w", err)
	}
	to, err := filepath.Abs(r.to)
	if err != nil {
		return err
	}
	for _, name := range []string{"ebpfprof", "ebpfprof-agent"} {
		for _, format := range []string{"deb", "rpm"} {
			pack := exec.Command(r.nfpm, "package", "--config", "packages/"+name+".yaml", "--packager", format, "--target", to)
			pack.Dir = stage
			// Times of files are those of nothing: equal input is an equal package.
			pack.Env = append(os.Environ(), "PACKAGE_ARCH="+r.arch, "PACKAGE_VERSION="+packageVersion(r.version), "SOURCE_DATE_EPOCH=0")
			if out, err := pack.CombinedOutput(); err != nil {
				return fmt.Errorf("packing %s as %s: %w: %s", name, format, err, out)
			}
		}
	}
	return nil
}
