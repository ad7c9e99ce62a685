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

// Count is a number for people: 12,345 or 1.23 M.
func Count(n uint64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 1000:
		return grouped(n)
	}
	return fmt.Sprint(n)
}

func grouped(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// Seconds is a sum of time for people.
func Seconds(ns int64) string {
	switch s := float64(ns) / 1e9; {
	case s >= 100:
		return fmt.Sprintf("%.0f s", s)
	case s >= 1:
		return fmt.Sprintf("%.1f s", s)
	default:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
}
