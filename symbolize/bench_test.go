package symbolize

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/testelf"
	"github.com/ebpfprof/ebpfprof/symbolize/elf/elftest"
)

func BenchmarkFrame(b *testing.B) {
	for _, path := range testelf.Libtorchs(b) {
		b.Run(testelf.ShortName(path), func(b *testing.B) {
			e := elftest.Open(b, path)
			starts := e.FunctionStarts()
			f := NewFile(e, path)
			f.Frame(starts[0])
			i := 0
			for b.Loop() {
				f.Frame(starts[i*7919%len(starts)] + uint64(i%4))
				i++
			}
		})
	}
}

func BenchmarkNewKernelNames(b *testing.B) {
	for b.Loop() {
		if k := NewKernelNames(); k.Err() != nil {
			b.Skip(k.Err())
		}
	}
}
