// Package amount says amounts for people. It owns the units and how many digits
// they have; tables and pictures show the same.
package amount

import "fmt"

// Bytes is a size: 1.50 GiB, 16.0 MiB, 1.0 KiB or 512 B.
func Bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
