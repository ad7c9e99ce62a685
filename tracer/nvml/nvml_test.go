package nvml

import (
	"errors"
	"testing"
	"unsafe"
)

// TestStructsHaveTheLayoutOfTheManual: sizes and offsets of nvml.h on 64-bit machines, by its compiler.
func TestStructsHaveTheLayoutOfTheManual(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"nvmlMemory_t", unsafe.Sizeof(Memory{}), 24},
		{"nvmlUtilization_t", unsafe.Sizeof(Utilization{}), 8},
		{"nvmlViolationTime_t", unsafe.Sizeof(Violation{}), 16},
		{"nvmlSample_t", unsafe.Sizeof(Sample{}), 16},
		{"nvmlFieldValue_t", unsafe.Sizeof(Field{}), 40},
		{"nvmlFieldValue_t.value", unsafe.Offsetof(Field{}.Value), 32},
		{"nvmlProcessUtilizationSample_t", unsafe.Sizeof(Process{}), 32},
		{"nvmlProcessUtilizationSample_t.timeStamp", unsafe.Offsetof(Process{}.Time), 8},
		{"nvmlGpmMetric_t", unsafe.Sizeof(gpmMetric{}), 40},
		{"nvmlGpmMetricsGet_t.metrics", unsafe.Offsetof(gpmMetrics{}.metrics), 24},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, c.got, c.want)
		}
	}
}

func TestWithoutALibraryTheReasonIsNamed(t *testing.T) {
	_, err := Open("/nonexistent/libnvidia-ml.so.1")
	if !errors.Is(err, ErrNoLibrary) && !errors.Is(err, ErrStatic) {
		t.Error(err)
	}
}
