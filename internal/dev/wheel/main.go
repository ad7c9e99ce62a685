// Command wheel packs the program and its Python package into a wheel:
//
//	go run ./internal/dev/wheel -program bin/manylinux/ebpfprof-x86_64 -platform manylinux_2_28_x86_64 -version v0.3.0 -o bin/dist
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	var w wheel
	var git, dir string
	most := flag.Int64("most", 45, "the `MIB` that a wheel may have: what an index and a slow line can bear")
	flag.StringVar(&w.program, "program", "", "the program's `FILE`")
	flag.StringVar(&w.platform, "platform", "", "platform `TAG`, such as manylinux_2_28_x86_64")
	flag.StringVar(&git, "version", "", "`VERSION`, as git describes it")
	flag.StringVar(&w.source, "source", "python", "`DIR` with the Python package")
	flag.StringVar(&w.readme, "readme", "python/README.md", "the description, a `FILE` in Markdown")
	flag.StringVar(&w.license, "license", "LICENSE", "the licence's `FILE`")
	flag.StringVar(&dir, "o", ".", "`DIR` for the wheel")
	flag.Parse()
	if w.program == "" || w.platform == "" || git == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "wheel: -program, -platform and -version are needed")
		os.Exit(2)
	}
	w.version = pythonVersion(git)
	if err := pack(w, dir, *most); err != nil {
		fmt.Fprintln(os.Stderr, "wheel:", err)
		os.Exit(1)
	}
}

func pack(w wheel, dir string, most int64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path, err := w.write(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %.1f MiB\n", path, float64(info.Size())/(1<<20))
	if info.Size() > most<<20 {
		return fmt.Errorf("%s is larger than %d MiB", path, most)
	}
	return nil
}
