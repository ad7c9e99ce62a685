package site

import (
	"slices"
	"testing"
)

// BenchmarkOperators plans the entry and the exits of every at::_ops call of a
// real library; ns/op is the price of attaching them all.
func BenchmarkOperators(b *testing.B) {
	for name, pattern := range map[string]string{"debian1.13": debianTorch, "wheel": wheelTorch} {
		b.Run(name, func(b *testing.B) {
			l := openLibrary(b, pattern)
			var fs []Function
			size := 0
			for _, n := range l.match("_ZN2at4_ops", "4callE") {
				f := l.function(n)
				fs = append(fs, cachedParts(f))
				size += len(f.Code)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				for _, f := range fs {
					PlanEntry(f, Need{Args: 7})
					PlanExits(f, false)
				}
			}
			b.ReportMetric(float64(len(fs)), "functions")
			b.SetBytes(int64(size))
		})
	}
}

// cachedParts reads the cold parts once, as a mapped library would.
func cachedParts(f Function) Function {
	p, err := newProgram(&f, 0)
	if err != nil {
		return f
	}
	frags := slices.Clone(p.frags[1:])
	p.release()
	f.NoReturn, f.Leaf = remember(f.NoReturn), remember(f.Leaf)
	f.Part = func(a uint64) (Fragment, bool) {
		for _, fr := range frags {
			if a-fr.Address < uint64(len(fr.Code)) {
				return fr, true
			}
		}
		return Fragment{}, false
	}
	return f
}

// remember caches answers, as a caller that asks by name should.
func remember(ask func(uint64) bool) func(uint64) bool {
	known := map[uint64]bool{}
	return func(a uint64) bool {
		v, ok := known[a]
		if !ok {
			v = ask(a)
			known[a] = v
		}
		return v
	}
}

func BenchmarkDecodeAMD64(b *testing.B) {
	l := openLibrary(b, "/usr/lib/x86_64-linux-gnu/libc.so.6")
	code, addr, _ := l.Section(".text")
	b.SetBytes(int64(len(code)))
	n := 0
	for b.Loop() {
		var in insn
		for off := 0; off < len(code); {
			if !decodeAMD64(code, off, addr, &in) {
				in.size = 1
			}
			off += int(in.size)
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/insn")
}
