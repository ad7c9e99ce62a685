package counter

// memorySource is /proc/meminfo. See proc(5).
type memorySource struct{ path string }

func openMemory(f Files) (source, error) {
	return present(memorySource{f.path("proc/meminfo")}, f.path("proc/meminfo"))
}

var memoryMetrics = []metric{
	{"MemTotal", "memory_total", Bytes, 1024, false},
	{"MemFree", "memory_free", Bytes, 1024, false},
	{"MemAvailable", "memory_available", Bytes, 1024, false},
	{"Buffers", "memory_buffers", Bytes, 1024, false},
	{"Cached", "memory_cached", Bytes, 1024, false},
	{"AnonPages", "memory_anonymous", Bytes, 1024, false},
	{"Mapped", "memory_mapped", Bytes, 1024, false},
	{"Shmem", "memory_shared", Bytes, 1024, false},
	{"Slab", "memory_slab", Bytes, 1024, false},
	{"Mlocked", "memory_locked", Bytes, 1024, false},
	{"Dirty", "memory_dirty", Bytes, 1024, false},
	{"Writeback", "memory_writeback", Bytes, 1024, false},
	{"SwapTotal", "swap_total", Bytes, 1024, false},
	{"SwapFree", "swap_free", Bytes, 1024, false},
}

func (s memorySource) read(r *round) error {
	text, err := r.read(s.path)
	if err != nil {
		return err
	}
	r.addKeyed(machine, parseKeyed(text), memoryMetrics)
	return nil
}
