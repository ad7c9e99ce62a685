package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sums is the file that sha256sum --check reads.
const sums = "SHA256SUMS"

// writeSums writes the sums of a directory's files, sorted by name.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		if e.Name() == sums || !e.Type().IsRegular() {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		sum := sha256.New()
		n, err := io.Copy(sum, f)
		f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum.Sum(nil), e.Name())
		fmt.Printf("%6.1f MiB  %s\n", float64(n)/(1<<20), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, sums), []byte(lines.String()), 0o644)
}
