package counter

import "strings"

// diskSource is /proc/diskstats: whole disks and their partitions, those that
// were used since the machine started.
// https://docs.kernel.org/admin-guide/iostats.html
type diskSource struct{ path string }

func openDisk(f Files) (source, error) {
	return present(diskSource{f.path("proc/diskstats")}, f.path("proc/diskstats"))
}

// A sector is 512 bytes there, whatever the disk's own are.
var diskMetrics = []metric{
	{"0", "disk_reads", Count, 1, true},
	{"2", "disk_read", Bytes, 512, true},
	{"3", "disk_read_time", Nanoseconds, 1e6, true},
	{"4", "disk_writes", Count, 1, true},
	{"6", "disk_written", Bytes, 512, true},
	{"7", "disk_write_time", Nanoseconds, 1e6, true},
	{"8", "disk_in_flight", Count, 1, false},
	{"9", "disk_busy", Nanoseconds, 1e6, true},
}

func (s diskSource) read(r *round) error {
	text, err := r.read(s.path)
	if err != nil {
		return err
	}
	for _, d := range parseDiskstats(text) {
		r.addUsed(device(d.device), d, diskMetrics)
	}
	return nil
}

// parseDiskstats reads "254 0 vda 69687 11599 …".
func parseDiskstats(text string) (disks []totals) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		if d, ok := parseTotals(fields[2], fields[3:]); ok {
			disks = append(disks, d)
		}
	}
	return disks
}
