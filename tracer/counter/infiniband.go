package counter

import (
	"fmt"
	"os"
	"path/filepath"
)

// infinibandSource is /sys/class/infiniband/*/ports/*: InfiniBand and RoCE.
// https://docs.kernel.org/infiniband/sysfs.html and, for hw_counters, the
// vendors' documents (mlx5, efa).
type infinibandSource struct{ dir string }

func openInfiniband(f Files) (source, error) {
	dir := f.path("sys/class/infiniband")
	if names, _ := filepath.Glob(filepath.Join(dir, "*", "ports", "*", "counters")); len(names) == 0 {
		return nil, fmt.Errorf("no port in %s: no RDMA device, or its driver is not loaded", dir)
	}
	return infinibandSource{dir}, nil
}

// The data counters count words of four bytes.
var portMetrics = []metric{
	{"counters/port_rcv_data", "infiniband_received", Bytes, 4, true},
	{"counters/port_xmit_data", "infiniband_sent", Bytes, 4, true},
	{"counters/port_rcv_packets", "infiniband_received_packets", Count, 1, true},
	{"counters/port_xmit_packets", "infiniband_sent_packets", Count, 1, true},
	{"counters/port_xmit_wait", "infiniband_send_wait_ticks", Count, 1, true},
	{"counters/port_xmit_discards", "infiniband_send_discards", Count, 1, true},
	{"counters/port_rcv_errors", "infiniband_receive_errors", Count, 1, true},
	{"counters/symbol_error", "infiniband_symbol_errors", Count, 1, true},
	{"counters/link_error_recovery", "infiniband_link_recoveries", Count, 1, true},
	{"counters/link_downed", "infiniband_link_downs", Count, 1, true},
	{"hw_counters/out_of_sequence", "infiniband_out_of_sequence", Count, 1, true},
	{"hw_counters/packet_seq_err", "infiniband_sequence_errors", Count, 1, true},
	{"hw_counters/local_ack_timeout_err", "infiniband_ack_timeouts", Count, 1, true},
	{"hw_counters/rnr_nak_retry_err", "infiniband_receiver_not_ready", Count, 1, true},
	{"hw_counters/np_cnp_sent", "infiniband_congestion_sent", Count, 1, true},
	{"hw_counters/rp_cnp_handled", "infiniband_congestion_handled", Count, 1, true},
}

func (s infinibandSource) read(r *round) (failed error) {
	devices, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, d := range devices {
		ports, err := os.ReadDir(filepath.Join(s.dir, d.Name(), "ports"))
		firstOf(&failed, err)
		for _, p := range ports {
			dir := filepath.Join(s.dir, d.Name(), "ports", p.Name())
			firstOf(&failed, r.addFiles(device(d.Name()+":"+p.Name()), dir, portMetrics))
		}
	}
	return failed
}
