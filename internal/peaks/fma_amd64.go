package peaks

import "golang.org/x/sys/cpu"

func fmaLoop(n int)
func fmaLoop512(n int)

const fmasALoop = 12

// arithmetic is the loop that this processor does the most single-precision
// operations a second in, the operations of one round, and what it is called.
func arithmetic() (loop func(n int), operations float64, with string) {
	switch {
	case cpu.X86.HasAVX512F:
		return fmaLoop512, fmasALoop * 2 * 16, "AVX-512 FMA"
	case cpu.X86.HasFMA && cpu.X86.HasAVX2:
		return fmaLoop, fmasALoop * 2 * 8, "AVX2 FMA"
	}
	return plainLoop, plainOperations, "scalar Go: a lower bound"
}
