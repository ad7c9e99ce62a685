package torch

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf/elftest"
)

func BenchmarkOperatorNames(b *testing.B) {
	for _, path := range testelf.Libtorchs(b) {
		b.Run(testelf.ShortName(path), func(b *testing.B) {
			e := elftest.Open(b, path)
			for b.Loop() {
				if n := len(OperatorNames(e)); n < 2000 {
					b.Fatalf("%d operators", n)
				}
			}
		})
	}
}
