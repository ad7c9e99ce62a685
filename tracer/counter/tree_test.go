package counter

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree unpacks the made-up machine of testdata/machine.txt.
func tree(t *testing.T) Files {
	t.Helper()
	content, err := os.ReadFile("testdata/machine.txt")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	_, files, _ := strings.Cut(string(content), "\n-- ")
	for _, file := range strings.Split("-- "+files, "\n-- ") {
		head, body, _ := strings.Cut(strings.TrimPrefix(file, "-- "), "\n")
		name, target, link := strings.Cut(head, " -> ")
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(body+"\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Files(root)
}

// write replaces a file of the tree.
func (f Files) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(f.path(name), []byte(content+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ticking is a clock that goes on by a second with every Read: by nothing in
// between.
type ticking struct{ now int64 }

func (c *ticking) clock() int64 { return c.now }

func open(t *testing.T) (*Sampler, Files, *ticking) {
	t.Helper()
	f, clock := tree(t), &ticking{1e18}
	s := Open(Options{Files: f, Clock: clock.clock, NVML: "/nonexistent"})
	t.Cleanup(s.Close)
	s.Follow(4242)
	return s, f, clock
}

// lines are readings in a form that a test can spell out.
func lines(readings []Reading, source string) map[string]string {
	found := map[string]string{}
	for _, r := range readings {
		if r.Source != source {
			continue
		}
		at := r.Device
		if r.DeviceID != nil {
			at = fmt.Sprintf("%d=%s", *r.DeviceID, at)
		}
		if r.Scope != "" {
			at += "@" + r.Scope
		}
		period := "-"
		if r.PeriodNS != nil {
			period = fmt.Sprint(*r.PeriodNS)
		}
		key := strings.TrimSpace(at + " " + r.Name)
		if _, twice := found[key]; twice {
			found[key] = "there twice"
			continue
		}
		found[key] = fmt.Sprintf("%s %v %s/%s", r.Kind, math.Round(r.Value*1e6)/1e6, r.Unit, period)
	}
	return found
}

// expect compares all readings of a source.
func expect(t *testing.T, readings []Reading, source string, want map[string]string) {
	t.Helper()
	got := lines(readings, source)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %q is %q, want %q", source, key, got[key], value)
		}
		delete(got, key)
	}
	for key, value := range got {
		t.Errorf("%s: unexpected %q: %q", source, key, value)
	}
}

func TestSourcesThatAreThereAreNamedAndTheOthersSayWhy(t *testing.T) {
	s, _, _ := open(t)
	for _, a := range s.Available() {
		if (a.Err == nil) == (a.Source == "nvidia") {
			t.Errorf("%s: %v", a.Source, a.Err)
		}
	}
	empty := Open(Options{Files: Files(t.TempDir()), NVML: "/nonexistent"})
	defer empty.Close()
	for _, a := range empty.Available() {
		if a.Err == nil {
			t.Errorf("%s is found on a machine without files", a.Source)
		}
	}
	if got := empty.Read(); len(got) != 0 {
		t.Errorf("readings of a machine without files: %v", got)
	}
}

func TestProcessors(t *testing.T) {
	s, f, clock := open(t)
	if got := lines(s.Read(), "cpu"); len(got) != 0 {
		t.Errorf("totals before there was anything to compare with: %v", got)
	}
	f.write(t, "proc/stat", "cpu 0\ncpu0 150 11 22 1003 24 7 9 11 50 5\ncpu1 200 20 40 3000 29 4 4 4 0 0\nintr 1")
	clock.now += 1.5e9
	expect(t, s.Read(), "cpu", map[string]string{
		"cpu0 cpu_user": "delta 5e+08 ns/1500000000", "cpu0 cpu_nice": "delta 1e+07 ns/1500000000",
		"cpu0 cpu_system": "delta 2e+07 ns/1500000000", "cpu0 cpu_idle": "delta 3e+07 ns/1500000000",
		"cpu0 cpu_iowait": "delta 4e+07 ns/1500000000", "cpu0 cpu_irq": "delta 5e+07 ns/1500000000",
		"cpu0 cpu_softirq": "delta 6e+07 ns/1500000000", "cpu0 cpu_steal": "delta 7e+07 ns/1500000000",
		"cpu1 cpu_user": "delta 0 ns/1500000000", "cpu1 cpu_nice": "delta 0 ns/1500000000",
		"cpu1 cpu_system": "delta 0 ns/1500000000", "cpu1 cpu_idle": "delta 0 ns/1500000000",
		// iowait of cpu1 fell, which proc(5) says it may: no value.
		"cpu1 cpu_irq": "delta 0 ns/1500000000", "cpu1 cpu_softirq": "delta 0 ns/1500000000", "cpu1 cpu_steal": "delta 0 ns/1500000000",
	})
	failures := s.Failures()
	if len(failures) != 1 || failures[0].Source != "cpu" || failures[0].Count != 1 {
		t.Errorf("failures: %v, want the total that fell", failures)
	}
}

func TestPressure(t *testing.T) {
	s, f, clock := open(t)
	s.Read()
	f.write(t, "proc/pressure/cpu", "some avg10=1.00 avg60=1.00 avg300=1.00 total=56004200\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12")
	clock.now += 1e9
	expect(t, s.Read(), "pressure", map[string]string{
		"pressure_cpu_some": "delta 7000 ns/1000000000", "pressure_cpu_full": "delta 0 ns/1000000000",
		"pressure_memory_some": "delta 0 ns/1000000000", "pressure_memory_full": "delta 0 ns/1000000000",
		"pressure_io_some": "delta 0 ns/1000000000", "pressure_io_full": "delta 0 ns/1000000000",
	})
}

func TestMemory(t *testing.T) {
	s, _, clock := open(t)
	expect(t, s.Read(), "memory", map[string]string{
		"memory_total": "gauge 2.5276502016e+10 bytes/-", "memory_free": "gauge 1.977767936e+10 bytes/-",
		"memory_available": "gauge 2.4447541248e+10 bytes/-", "memory_buffers": "gauge 6.8145152e+07 bytes/-",
		"memory_cached": "gauge 4.674289664e+09 bytes/-",
	})
	clock.now += 3e9
	if got := lines(s.Read(), "memory")["memory_buffers"]; got != "gauge 6.8145152e+07 bytes/3000000000" {
		t.Errorf("the second reading: %s, want its period", got)
	}
}

func TestControlGroupsOfBothVersions(t *testing.T) {
	s, f, clock := open(t)
	s.Read()
	f.write(t, "sys/fs/cgroup/unified/kubepods.slice/pod7/cpu.stat", "usage_usec 1500\nuser_usec 900\nsystem_usec 600\nnr_periods "+
		"11\nnr_throttled 4\nthrottled_usec 52")
	f.write(t, "sys/fs/cgroup/unified/kubepods.slice/pod7/memory.events", "low 0\nhigh 1\nmax 2\noom 3\noom_kill 5")
	f.write(t, "sys/fs/cgroup/cpuacct/batch/cpuacct.usage", "66666")
	if err := os.RemoveAll(f.path("proc/4242")); err != nil { // it ended: the groups go on
		t.Fatal(err)
	}
	clock.now += 1e9
	expect(t, s.Read(), "cgroup", map[string]string{
		"@/kubepods.slice/pod7 cgroup_memory_used":          "gauge 1.073741824e+09 bytes/1000000000",
		"@/kubepods.slice/pod7 cgroup_memory_anonymous":     "gauge 900 bytes/1000000000",
		"@/kubepods.slice/pod7 cgroup_memory_file":          "gauge 800 bytes/1000000000",
		"@/kubepods.slice/pod7 cgroup_memory_shared":        "gauge 6 bytes/1000000000",
		"@/kubepods.slice/pod7 cgroup_major_faults":         "delta 0 count/1000000000",
		"@/kubepods.slice/pod7 cgroup_file_refaults":        "delta 0 count/1000000000",
		"@/kubepods.slice/pod7 cgroup_memory_high":          "delta 0 count/1000000000",
		"@/kubepods.slice/pod7 cgroup_memory_max":           "delta 0 count/1000000000",
		"@/kubepods.slice/pod7 cgroup_memory_oom":           "delta 0 count/1000000000",
		"@/kubepods.slice/pod7 cgroup_memory_oom_kills":     "delta 1 count/1000000000",
		"@/kubepods.slice/pod7 cgroup_cpu_used":             "delta 500000 ns/1000000000",
		"@/kubepods.slice/pod7 cgroup_cpu_user":             "delta 200000 ns/1000000000",
		"@/kubepods.slice/pod7 cgroup_cpu_system":           "delta 300000 ns/1000000000",
		"@/kubepods.slice/pod7 cgroup_cpu_periods":          "delta 1 count/1000000000",
		"@/kubepods.slice/pod7 cgroup_cpu_quota":            "gauge 150 percent/1000000000",
		"@/kubepods.slice/pod7 cgroup_cpu_throttles":        "delta 1 count/1000000000",
		"@/kubepods.slice/pod7 cgroup_cpu_throttled":        "delta 10000 ns/1000000000",
		"@/kubepods.slice/pod7 cgroup_pressure_memory_some": "delta 0 ns/1000000000",
		"@/kubepods.slice/pod7 cgroup_pressure_memory_full": "delta 0 ns/1000000000",
		"@memory:/batch/job_7 cgroup_memory_used":           "gauge 2048 bytes/1000000000",
		"@memory:/batch/job_7 cgroup_memory_max":            "delta 0 count/1000000000",
		"@memory:/batch/job_7 cgroup_memory_anonymous":      "gauge 222 bytes/1000000000",
		"@memory:/batch/job_7 cgroup_memory_file":           "gauge 111 bytes/1000000000",
		"@memory:/batch/job_7 cgroup_major_faults":          "delta 0 count/1000000000",
		"@cpu:/batch cgroup_cpu_periods":                    "delta 0 count/1000000000",
		"@cpu:/batch cgroup_cpu_quota":                      "gauge 20 percent/1000000000",
		"@cpu:/batch cgroup_cpu_throttles":                  "delta 0 count/1000000000",
		"@cpu:/batch cgroup_cpu_throttled":                  "delta 0 ns/1000000000",
		"@cpuacct:/batch cgroup_cpu_used":                   "delta 11111 ns/1000000000",
	})
}

func TestTheTopOfAHierarchyIsTheMachineAndNoGroup(t *testing.T) {
	s, f, clock := open(t)
	f.write(t, "proc/4242/cgroup", "4:memory:/\n0::/")
	f.write(t, "sys/fs/cgroup/memory/release_agent", "")
	f.write(t, "sys/fs/cgroup/memory/memory.usage_in_bytes", "1")
	f.write(t, "sys/fs/cgroup/unified/cpu.stat", "usage_usec 1000")
	s.Read()
	clock.now += 1e9
	expect(t, s.Read(), "cgroup", map[string]string{})
}

func TestDisksThatWereUsed(t *testing.T) {
	s, f, clock := open(t)
	s.Read()
	f.write(t, "proc/diskstats", " 259 0 nvme0n1 69690 11599 6551390 27830 41430 65823 23655992 97692 5 15106 127838 9838 144 6988808 2057 "+
		"4962 271\n   7 0 loop0 0 0 0 0 0 0 0 0 0 0 0")
	clock.now += 2e9
	expect(t, s.Read(), "disk", map[string]string{
		"nvme0n1 disk_reads": "delta 3 count/2000000000", "nvme0n1 disk_read": "delta 2048 bytes/2000000000",
		"nvme0n1 disk_read_time": "delta 3e+06 ns/2000000000", "nvme0n1 disk_writes": "delta 1 count/2000000000",
		"nvme0n1 disk_written": "delta 4096 bytes/2000000000", "nvme0n1 disk_write_time": "delta 1e+07 ns/2000000000",
		"nvme0n1 disk_in_flight": "gauge 5 count/2000000000", "nvme0n1 disk_busy": "delta 1e+07 ns/2000000000",
	})
}

func TestTheFirstUseOfADeviceCounts(t *testing.T) {
	s, f, clock := open(t)
	s.Read()
	f.write(t, "proc/diskstats", " 7 0 loop0 1 0 8 1 0 0 0 0 0 1 1")
	clock.now += 1e9
	if got := lines(s.Read(), "disk")["loop0 disk_read"]; got != "delta 4096 bytes/1000000000" {
		t.Errorf("the first read of a disk is %q", got)
	}
}

func TestTheNetworkIsTheJobs(t *testing.T) {
	s, f, clock := open(t)
	s.Read()
	f.write(t, "proc/4242/net/dev", "a|b\nc|d\n    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n  eth0: 3762611412 74850 1 4 0 0 0 0 3689392 50893 "+
		"3 0 0 0 0 0")
	clock.now += 1e9
	expect(t, s.Read(), "network", map[string]string{
		"eth0@net:[4026532000] network_received":         "delta 100 bytes/1000000000",
		"eth0@net:[4026532000] network_received_packets": "delta 6 count/1000000000",
		"eth0@net:[4026532000] network_receive_errors":   "delta 0 count/1000000000",
		"eth0@net:[4026532000] network_receive_drops":    "delta 2 count/1000000000",
		"eth0@net:[4026532000] network_sent":             "delta 80 bytes/1000000000",
		"eth0@net:[4026532000] network_sent_packets":     "delta 8 count/1000000000",
		"eth0@net:[4026532000] network_send_errors":      "delta 0 count/1000000000",
	})
}

func TestInfinibandCountsWords(t *testing.T) {
	s, f, clock := open(t)
	s.Read()
	f.write(t, "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "1010")
	f.write(t, "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors", "garbage")
	clock.now += 1e9
	expect(t, s.Read(), "infiniband", map[string]string{
		"mlx5_0:1 infiniband_received": "delta 40 bytes/1000000000", "mlx5_0:1 infiniband_sent": "delta 0 bytes/1000000000",
		"mlx5_0:1 infiniband_received_packets": "delta 0 count/1000000000", "mlx5_0:1 infiniband_sent_packets": "delta 0 count/1000000000",
		"mlx5_0:1 infiniband_send_wait_ticks": "delta 0 count/1000000000", "mlx5_0:1 infiniband_link_downs": "delta 0 count/1000000000",
		"mlx5_0:1 infiniband_congestion_sent": "delta 0 count/1000000000",
	})
	failures := s.Failures()
	if len(failures) != 1 || !strings.Contains(failures[0].Err.Error(), "port_rcv_errors") {
		t.Errorf("failures: %v, want the counter that is no number", failures)
	}
}

func TestAMDCardsInTheOrderOfTheirAddresses(t *testing.T) {
	s, _, _ := open(t)
	want := map[string]string{}
	for id, card := range []struct {
		address string
		busy    int
	}{{"0000:03:00.0", 41}, {"0000:c3:00.0", 40}} {
		at := fmt.Sprintf("%d=%s ", id, card.address)
		want[at+"gpu_busy"] = fmt.Sprintf("gauge %d percent/-", card.busy)
		want[at+"gpu_memory_used"], want[at+"gpu_memory_total"] = "gauge 1000 bytes/-", "gauge 6.870269952e+10 bytes/-"
		want[at+"gpu_power"] = "gauge 300 watts/-"
		want[at+"gpu_temperature"], want[at+"gpu_temperature_hotspot"] = "gauge 45 celsius/-", "gauge 52 celsius/-"
		want[at+"gpu_temperature_memory"] = "gauge 60 celsius/-"
		want[at+"gpu_clock_sm"], want[at+"gpu_clock_memory"] = "gauge 1.7e+09 hertz/-", "gauge 1.6e+09 hertz/-"
	}
	expect(t, s.Read(), "amd", want)
}

func TestNeuronCoresOfBothLayouts(t *testing.T) {
	s, f, clock := open(t)
	s.Read()
	f.write(t, "sys/devices/virtual/neuron_device/neuron0/neuron_core0/stats/other_info/inference_count/total", "507")
	f.write(t, "sys/devices/virtual/neuron_device/neuron0/neuron_core1/stats/other_info/inference_count", "11")
	clock.now += 1e9
	expect(t, s.Read(), "neuron", map[string]string{
		"0=neuron0 neuron_memory_ecc_uncorrected":      "delta 0 count/1000000000",
		"0=neuron0 neuron_host_memory_used":            "gauge 4096 bytes/1000000000",
		"0=neuron0:neuron_core0 neuron_executions":     "delta 7 count/1000000000",
		"0=neuron0:neuron_core0 neuron_status_success": "delta 0 count/1000000000",
		"0=neuron0:neuron_core0 gpu_memory_used":       "gauge 777777 bytes/1000000000",
		"0=neuron0:neuron_core0 neuron_memory_tensors": "gauge 333 bytes/1000000000",
		"0=neuron0:neuron_core1 neuron_executions":     "delta 2 count/1000000000",
	})
}

func TestClocksTemperaturesAndEnergyOfTheHost(t *testing.T) {
	s, f, clock := open(t)
	first := s.Read()
	expect(t, first, "frequency", map[string]string{
		"cpu0 cpu_clock": "gauge 2.4e+09 hertz/-", "cpu0 cpu_clock_limit": "gauge 3e+09 hertz/-", "cpu0 cpu_clock_max": "gauge 3.5e+09 hertz/-",
		"cpu4 cpu_clock": "gauge 3.5e+09 hertz/-",
	})
	// A zone that says -274 °C has no reading.
	expect(t, first, "thermal", map[string]string{
		"thermal_zone0@acpitz temperature": "gauge 27.8 celsius/-", "thermal_zone1@x86_pkg_temp temperature": "gauge 61 celsius/-",
	})
	expect(t, first, "energy", nil)
	f.write(t, "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "5")
	f.write(t, "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms", "140")
	f.write(t, "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_total_time_ms", "300")
	f.write(t, "sys/class/powercap/intel-rapl:0/energy_uj", "671150") // once around: 328,850 µJ to the end of its range and these
	f.write(t, "sys/class/powercap/intel-rapl:0:0/energy_uj", "9000000")
	clock.now += 1e9
	later := s.Read()
	expect(t, later, "energy", map[string]string{"package-0 energy": "delta 1 joules/1000000000",
		"package-0/dram energy": "delta 4 joules/1000000000"})
	expect(t, later, "thermal", map[string]string{
		"thermal_zone0@acpitz temperature":       "gauge 27.8 celsius/1000000000",
		"thermal_zone1@x86_pkg_temp temperature": "gauge 61 celsius/1000000000",
		"cpu0 cpu_throttles":                     "delta 2 count/1000000000", "cpu0 cpu_throttled": "delta 1e+08 ns/1000000000",
		"cpu1 cpu_throttles": "delta 0 count/1000000000", "cpu1 cpu_throttled": "delta 0 ns/1000000000",
		"package-0 cpu_throttles": "delta 0 count/1000000000", "package-0 cpu_throttled": "delta 2e+08 ns/1000000000",
	})
}

// On a machine whose clocks are slow to read they take turns.
func TestManyClocksAreReadInTurns(t *testing.T) {
	f := tree(t)
	opened, err := openFrequency(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	now := int64(1e18)
	for range 2 {
		r := &round{name: "frequency", history: map[series]point{}, clock: func() int64 { now += 1e6; return now }}
		if err := opened.read(r); err != nil {
			t.Fatal(err)
		}
		for _, reading := range r.readings {
			if reading.Name == "cpu_clock" {
				seen[reading.Device]++
			}
		}
	}
	if seen["cpu0"] != 1 || seen["cpu4"] != 1 {
		t.Errorf("%v: want each once in two rounds", seen)
	}
}

func TestASourceThatVanishesIsCounted(t *testing.T) {
	s, f, _ := open(t)
	s.Read()
	if err := os.Remove(f.path("proc/stat")); err != nil {
		t.Fatal(err)
	}
	s.Read()
	s.Read()
	failures := s.Failures()
	if i := len(failures); i == 0 || failures[0].Source != "cpu" || failures[0].Count != 2 {
		t.Errorf("failures: %v, want two of cpu", failures)
	}
}

// A control group's readings are a process's where the job has had no other in it.
func TestAProcessAloneInItsControlGroupIsNamed(t *testing.T) {
	f := Files(t.TempDir())
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(f.path(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.path(path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, group := range []string{"one", "two"} {
		write("sys/fs/cgroup/cpu/"+group+"/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 5")
	}
	write("proc/7/cgroup", "1:cpu:/one")
	write("proc/8/cgroup", "1:cpu:/two")
	write("proc/9/cgroup", "1:cpu:/two")
	j := &job{pids: []int{7, 8, 9}}
	s, err := openCgroup(f, j)
	if err != nil {
		t.Fatal(err)
	}
	groups := s.(*cgroupSource)
	groups.groups()
	j.pids = []int{8} // the others have ended: their groups are what they were
	groups.groups()
	if one, two := groups.members[controlGroup{"cpu", "/one"}], groups.members[controlGroup{"cpu", "/two"}]; one != 7 || two != -1 {
		t.Errorf("the process of the first is %d, of the second %d", one, two)
	}
}
