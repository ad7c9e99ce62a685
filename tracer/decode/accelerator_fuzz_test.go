package decode

import (
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// FuzzAcceleratorCalls makes calls into the runtimes of the catalog, in any order
// and with any arguments: small numbers, so that handles meet again.
func FuzzAcceleratorCalls(f *testing.F) {
	f.Add([]byte("cuLaunchKernel and what else there is"))
	f.Add([]byte{120, 1, 0, 5, 9, 130, 1, 0, 5, 9, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7})
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, _, _ := testDecoder(t)
		probes := d.calls.probes.All()
		next := func() byte {
			if len(raw) == 0 {
				return 0
			}
			b := raw[0]
			raw = raw[1:]
			return b
		}
		for id := uint64(1); len(raw) > 0 && id < 200; id++ {
			p := probes[(int(next())|int(next())<<8)%len(probes)]
			r := span(p.Index, id)
			r.End, r.Status = uint8(event.EndReturn), next()%5
			r.StartNs, r.EndNs = 100*id, 100*id+uint64(next())
			r.Faults = uint32(next())
			args := make([]uint64, len(p.Planned.Function.Values))
			for i := range args {
				args[i] = uint64(next()) % 8
				if args[i] == 7 {
					args[i] = ^uint64(next()) // something far away
				}
			}
			d.calls.record(encodeText(id, p.Index, "_Z1kv"))
			d.calls.record(encode(r, uint64(next()%3), args...))
		}
		if err := d.Finish(); err != nil {
			t.Fatal(err)
		}
	})
}
