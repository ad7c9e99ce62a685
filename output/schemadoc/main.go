// Schemadoc writes docs/schema.md: go generate ./output.
package main

import (
	"fmt"
	"os"

	"github.com/ebpfprof/ebpfprof/output"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: schemadoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(output.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "schemadoc:", err)
		os.Exit(1)
	}
	fmt.Println("schema", output.SchemaVersion, "fingerprint", output.Fingerprint())
}
