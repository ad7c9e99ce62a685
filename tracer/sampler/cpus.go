package sampler

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

func onlineCPUs() ([]int, error) {
	list, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("listing the CPUs: %w", err)
	}
	return parseCPUList(strings.TrimSpace(string(list)))
}

// parseCPUList reads the kernel's way to write a set: "0-3,8".
func parseCPUList(list string) (cpus []int, err error) {
	for _, part := range strings.Split(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(high)
		}
		if err != nil || last < first || last-first > 1<<16 {
			return nil, fmt.Errorf("listing the CPUs: unreadable %q", list)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
