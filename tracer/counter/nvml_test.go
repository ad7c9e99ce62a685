//go:build !static

package counter

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stub builds a stub of libnvidia-ml and opens it. Its answers
// are made up: testdata/stubs/nvml.c.
func stub(t *testing.T, name string) *Sampler {
	t.Helper()
	dir := filepath.Join("..", "..", "testdata", "stubs")
	if out, err := exec.Command("make", "-s", "-C", dir, "nvml").CombinedOutput(); err != nil {
		t.Fatalf("building the stub: %v\n%s", err, out)
	}
	path, err := filepath.Abs(filepath.Join(dir, "build", name))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := openNVML(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &Sampler{options: Options{Clock: func() int64 { return time.Now().UnixNano() }}, self: map[series]point{}}
	s.sources = []*sampled{{name: "nvidia", source: opened, history: map[series]point{}}}
	t.Cleanup(s.Close)
	return s
}

// values are the readings of one GPU by name.
func values(readings []Reading, id int32) map[string]Reading {
	found := map[string]Reading{}
	for _, r := range readings {
		if r.DeviceID != nil && *r.DeviceID == id {
			found[r.Name] = r
		}
	}
	return found
}

type want struct {
	kind  Kind
	unit  string
	value float64
}

func check(t *testing.T, got map[string]Reading, wanted map[string]want) {
	t.Helper()
	for name, w := range wanted {
		r, ok := got[name]
		if !ok {
			t.Errorf("no %s", name)
			continue
		}
		if r.Kind != w.kind || r.Unit != w.unit || r.Value < w.value-1e-6 || r.Value > w.value+1e-6 {
			t.Errorf("%s: %s %v %s, want %+v", name, r.Kind, r.Value, r.Unit, w)
		}
		delete(got, name)
	}
	for name, r := range got {
		t.Errorf("unexpected %s: %+v", name, r)
	}
}

func TestNVMLOfTheStubTellsWhatTheStubKnows(t *testing.T) {
	s := stub(t, "libnvidia-ml-stub.so")
	s.Read()
	readings := s.Read()
	if f := s.Failures(); len(f) > 0 {
		t.Errorf("failures: %v", f)
	}
	first := values(readings, 0)
	if d := first["gpu_power"].Device; d != "GPU-stub-0" {
		t.Errorf("device %q", d)
	}
	if p := first["gpu_process_busy"].PID; p == nil || *p != 4242 {
		t.Errorf("process %v, want 4242", p)
	}
	const GiB = 1 << 30
	expected := map[string]want{
		"gpu_busy": {Mean, Percent, 52.5}, "gpu_memory_busy": {Mean, Percent, 32.5},
		"gpu_memory_used": {Gauge, Bytes, 11 * GiB}, "gpu_memory_total": {Gauge, Bytes, 80 * GiB},
		"gpu_power": {Gauge, Watts, 350.5}, "gpu_energy": {Delta, Joules, 350}, "gpu_temperature": {Gauge, Celsius, 61},
		"gpu_clock_sm": {Gauge, Hertz, 1980e6}, "gpu_clock_memory": {Gauge, Hertz, 2619e6},
		"gpu_throttled_power": {Delta, Nanoseconds, 7e6}, "gpu_throttled_thermal": {Delta, Nanoseconds, 3e6},
		"gpu_nvlink_sent": {Delta, Bytes, 1000 * 1024}, "gpu_nvlink_received": {Delta, Bytes, 3000 * 1024},
		"gpu_pcie_sent": {Delta, Bytes, 5e6}, "gpu_pcie_received": {Delta, Bytes, 9e6},
		"gpu_process_busy": {Mean, Percent, 33}, "gpu_process_memory_busy": {Mean, Percent, 12},
	}
	for _, reason := range throttleNames {
		expected[reason.name] = want{Gauge, Flag, 0}
	}
	expected["gpu_throttle_power_cap"], expected["gpu_throttle_hardware"] = want{Gauge, Flag, 1}, want{Gauge, Flag, 1}
	for _, m := range gpmMetrics {
		if m.name != "gpm_tensor_integer_busy" { // which the stub has not
			expected[m.name] = want{Mean, m.unit, (float64(m.id) + 0.1) * m.factor}
		}
	}
	if p := first["gpu_busy"].PeriodNS; p == nil || *p != 6*166667*1000 {
		t.Errorf("the samples' period is %v, want six times a sixth of a second by the driver's stamps", p)
	}
	for name, r := range first {
		unknown := strings.HasPrefix(name, "gpu_process_")
		if (r.PeriodNS == nil) != unknown {
			t.Errorf("%s: period %v", name, r.PeriodNS)
		}
	}
	check(t, first, expected)

	older := values(readings, 1)
	if r := older["gpu_busy"]; r.PeriodNS != nil {
		t.Errorf("a rate whose window is unknown has the period %d", *r.PeriodNS)
	}
	expected = map[string]want{
		"gpu_busy": {Mean, Percent, 41}, "gpu_memory_busy": {Mean, Percent, 21},
		"gpu_memory_used": {Gauge, Bytes, 11 * GiB}, "gpu_memory_total": {Gauge, Bytes, 80 * GiB},
		"gpu_power": {Gauge, Watts, 351.5}, "gpu_temperature": {Gauge, Celsius, 62},
		"gpu_clock_sm": {Gauge, Hertz, 1980e6}, "gpu_clock_memory": {Gauge, Hertz, 2619e6},
		"gpu_pcie_send_rate": {Mean, PerSecond, 1111e3}, "gpu_pcie_receive_rate": {Mean, PerSecond, 2222e3},
	}
	for _, reason := range throttleNames {
		expected[reason.name] = want{Gauge, Flag, 0}
	}
	expected["gpu_throttle_idle"] = want{Gauge, Flag, 1}
	check(t, older, expected)
}

func TestAnOldDriverIsNotAskedForWhatItLacks(t *testing.T) {
	s := stub(t, "libnvidia-ml-old-stub.so")
	s.Read()
	got := values(s.Read(), 0)
	for _, name := range []string{"gpu_memory_used", "gpu_power", "gpu_temperature", "gpu_clock_sm", "gpu_throttle_power_cap", "gpu_busy",
		"gpu_pcie_send_rate"} {
		if _, ok := got[name]; !ok {
			t.Errorf("no %s, which every driver has", name)
		}
	}
	for name := range got {
		if name == "gpu_energy" || strings.HasPrefix(name, "gpm_") || strings.HasPrefix(name, "gpu_process") {
			t.Errorf("%s from a driver that lacks it", name)
		}
	}
}

func TestAHangingDriverLeavesAGapAndNotASilence(t *testing.T) {
	s := stub(t, "libnvidia-ml-stub.so")
	s.sources[0].source.(*watched).patience = 50 * time.Millisecond
	hang := filepath.Join(t.TempDir(), "hang")
	t.Setenv("STUB_NVML_HANG", hang)
	if len(values(s.Read(), 0)) == 0 {
		t.Fatal("no readings before the driver hangs")
	}
	if err := os.WriteFile(hang, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := values(s.Read(), 0); len(got) > 0 {
			t.Errorf("readings of a driver that hangs: %v", got)
		}
	}
	failures := s.Failures()
	if len(failures) != 1 || failures[0].Count != 3 || !errors.Is(failures[0].Err, errStalled) {
		t.Errorf("failures: %v, want three gaps", failures)
	}
	os.Remove(hang)
	for range 100 {
		if got := values(s.Read(), 0); len(got) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("no readings after the driver came back")
}

func TestALostGPUIsNamed(t *testing.T) {
	s := stub(t, "libnvidia-ml-stub.so")
	t.Setenv("STUB_NVML_LOST", "1")
	s.Read()
	failures := s.Failures()
	if len(failures) != 1 || !strings.Contains(fmt.Sprint(failures[0].Err), "GPU 0: GPU is lost (stub)") {
		t.Errorf("failures: %v", failures)
	}
}

func TestWithoutADriverTheReasonIsTold(t *testing.T) {
	_, err := openNVML("/nonexistent/libnvidia-ml.so.1")
	if err == nil || !strings.Contains(err.Error(), "no NVIDIA driver") {
		t.Error(err)
	}
}
