package report

import "fmt"

// Numbers for people.

func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func optional(v *float64) string {
	if v == nil {
		return "–"
	}
	return number(*v)
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func percentText(v float64) string { return fmt.Sprintf("%.1f", v) }

func count(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d", int64(v))
	}
	return fmt.Sprintf("%.0f", v)
}

func msText(v float64) string {
	if v >= 10_000 {
		return fmt.Sprintf("%.1f s", v/1e3)
	}
	return number(v) + " ms"
}

func scaled(v float64, base float64, units []string) string {
	i := 0
	for v >= base && i < len(units)-1 {
		v /= base
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.2f %s", v, units[i])
}

func bytesText(v float64) string {
	return scaled(v, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
}

func flopText(v float64) string {
	return scaled(v, 1000, []string{"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"})
}
