// Command offsetof writes the offset table of one installed CPython, as the C
// compiler computes it from that build's headers:
//
//	go run ./symbolize/cpython/offsetof -python python3.12 > symbolize/cpython/offsets_3_12.go
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/testkit/pythons"
	"github.com/ebpfprof/ebpfprof/symbolize/cpython"
)

func main() {
	python := flag.String("python", "python3", "the interpreter whose headers are asked")
	flag.Parse()
	if err := write(*python); err != nil {
		fmt.Fprintln(os.Stderr, "offsetof:", err)
		os.Exit(1)
	}
}

func write(name string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	p, err := pythons.Describe(path)
	if err != nil {
		return err
	}
	offsets, err := pythons.Offsets(p)
	if err != nil {
		return err
	}
	gcc, _ := exec.Command("gcc", "-dumpfullversion").Output()
	fmt.Printf("package cpython\n\n// Made by `go run ./symbolize/cpython/offsetof -python %s` on %s, from the headers\n",
		filepath.Base(path), time.Now().UTC().Format(time.DateOnly))
	fmt.Printf("// of CPython %s for x86-64, with gcc %s. TestTablesEqualOffsetof repeats it.\n", p.Version, strings.TrimSpace(string(gcc)))
	fmt.Printf("var table3%d = Table{\n\tMinor: %d,\n\tMeasured: []string{%q},\n\tOffsets: Offsets{\n", p.Minor, p.Minor, p.Version)
	fields := reflect.TypeFor[cpython.Offsets]()
	for i := range fields.NumField() {
		field := fields.Field(i).Name
		value := "Absent"
		if offset, ok := offsets[field]; ok {
			value = strconv.Itoa(offset)
		}
		fmt.Printf("\t\t%s: %s,\n", field, value)
	}
	fmt.Printf("\t},\n}\n")
	return nil
}
