package evidence

import "fmt"

// Time is a time as people read it.
func Time(ns float64) string {
	switch {
	case ns >= 1e9 || ns <= -1e9:
		return fmt.Sprintf("%.2f s", ns/1e9)
	case ns >= 1e6 || ns <= -1e6:
		return fmt.Sprintf("%.2f ms", ns/1e6)
	}
	return fmt.Sprintf("%.1f µs", ns/1e3)
}
