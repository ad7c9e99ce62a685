//go:build !amd64

package peaks

// arithmetic is a loop without vectors: what this processor does at most is more.
func arithmetic() (loop func(n int), operations float64, with string) {
	return plainLoop, plainOperations, "scalar Go: a lower bound"
}
