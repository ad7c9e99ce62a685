package counter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// amdSource is what the amdgpu driver keeps in sysfs, no ROCm needed.
// https://docs.kernel.org/gpu/amdgpu/thermal.html, …/driver-misc.html
type amdSource struct{ cards []amdCard }

// amdCard is one GPU. Its id is its place in the order of the cards' PCI
// addresses, which is HIP's without HIP_VISIBLE_DEVICES.
type amdCard struct {
	at       place
	dir      string // …/card0/device
	hwmon    string // …/hwmon/hwmon3, "" without one
	channels []metric
}

const amdVendor = "0x1002"

var amdMetrics = []metric{
	{"gpu_busy_percent", "gpu_busy", Percent, 1, false},
	{"mem_busy_percent", "gpu_memory_busy", Percent, 1, false},
	{"mem_info_vram_used", "gpu_memory_used", Bytes, 1, false},
	{"mem_info_vram_total", "gpu_memory_total", Bytes, 1, false},
	{"mem_info_gtt_used", "gpu_host_memory_used", Bytes, 1, false},
	{"pcie_replay_count", "gpu_pcie_replays", Count, 1, true},
}

func openAMD(f Files) (source, error) {
	s := &amdSource{}
	dir := f.path("sys/class/drm")
	for _, card := range list(dir, "card") {
		device := filepath.Join(dir, card, "device")
		if vendor, err := os.ReadFile(filepath.Join(device, "vendor")); err != nil || strings.TrimSpace(string(vendor)) != amdVendor {
			continue
		}
		s.cards = append(s.cards, openAMDCard(card, device))
	}
	if len(s.cards) == 0 {
		return nil, fmt.Errorf("no AMD card in %s", dir)
	}
	sortByAddress(s.cards)
	return s, nil
}

func openAMDCard(card, dir string) amdCard {
	c := amdCard{at: device(card), dir: dir}
	if target, err := os.Readlink(dir); err == nil {
		c.at.device = filepath.Base(target) // its PCI address
	}
	if monitors := list(filepath.Join(dir, "hwmon"), "hwmon"); len(monitors) > 0 {
		c.hwmon = filepath.Join(dir, "hwmon", monitors[0])
		c.channels = hwmonChannels(c.hwmon)
	}
	return c
}

func sortByAddress(cards []amdCard) {
	for i := range cards { // few
		for j := i; j > 0 && cards[j].at.device < cards[j-1].at.device; j-- {
			cards[j], cards[j-1] = cards[j-1], cards[j]
		}
	}
	for i := range cards {
		cards[i].at.id = int32(i)
	}
}

// hwmonLabels name the channels of hwmon, which are numbered differently from
// one card to the next: microwatts, thousandths of a degree, hertz.
var hwmonLabels = []struct {
	prefix, label string
	metric        metric
}{
	{"power", "PPT", metric{"", "gpu_power", Watts, 1e-6, false}},
	{"power", "slowPPT", metric{"", "gpu_power", Watts, 1e-6, false}},
	{"temp", "edge", metric{"", "gpu_temperature", Celsius, 1e-3, false}},
	{"temp", "junction", metric{"", "gpu_temperature_hotspot", Celsius, 1e-3, false}},
	{"temp", "mem", metric{"", "gpu_temperature_memory", Celsius, 1e-3, false}},
	{"freq", "sclk", metric{"", "gpu_clock_sm", Hertz, 1, false}},
	{"freq", "mclk", metric{"", "gpu_clock_memory", Hertz, 1, false}},
}

// hwmonChannels finds which file holds what. Older cards say power1_average,
// newer ones power1_input.
func hwmonChannels(dir string) (channels []metric) {
	found := map[string]bool{}
	for _, l := range hwmonLabels {
		for n := 1; n <= 9; n++ {
			channel := fmt.Sprintf("%s%d", l.prefix, n)
			label, err := os.ReadFile(filepath.Join(dir, channel+"_label"))
			if err != nil || strings.TrimSpace(string(label)) != l.label || found[l.metric.name] {
				continue
			}
			for _, kind := range []string{"_average", "_input"} {
				if _, err := os.Stat(filepath.Join(dir, channel+kind)); err == nil {
					m := l.metric
					m.file = channel + kind
					channels, found[m.name] = append(channels, m), true
					break
				}
			}
		}
	}
	return channels
}

func (s *amdSource) read(r *round) (failed error) {
	for _, c := range s.cards {
		firstOf(&failed, r.addFiles(c.at, c.dir, amdMetrics))
		if c.hwmon != "" {
			firstOf(&failed, r.addFiles(c.at, c.hwmon, c.channels))
		}
	}
	return failed
}
