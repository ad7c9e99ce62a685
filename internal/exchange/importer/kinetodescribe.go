package importer

import (
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

func (k *kineto) name() string {
	switch {
	case k.jax():
		return "JAX's profiler"
	case k.legacy():
		return "torch.autograd.profiler"
	case !k.torch && k.own == nil && k.tracks.plain:
		return "a trace in Chrome's format"
	}
	return "torch.profiler"
}

// jax says whether JAX or another program of XLA wrote the file: its processes are planes.
func (k *kineto) jax() bool {
	if k.torch || k.own != nil {
		return false
	}
	for _, name := range k.names {
		if strings.HasPrefix(name, "/device:") || strings.HasPrefix(name, "/host:") {
			return true
		}
	}
	return false
}

func (k *kineto) describe() description {
	d := description{
		base: k.base, rank: k.distributed.rank, worldSize: k.distributed.worldSize, framework: k.framework(),
		processNames: k.names, threadNames: k.threads, deviceName: k.deviceName(),
	}
	if d.rank == nil {
		d.rank = rankOf(k.path)
	}
	if len(k.devices) > 0 {
		d.deviceName = k.devices[0].Name
	}
	if k.own != nil {
		k.own.correct(&d)
	}
	k.warnings(&d)
	return d
}

// legacy says whether the profiler before Kineto wrote the file.
func (k *kineto) legacy() bool {
	for _, name := range k.names {
		if name == legacyHost {
			return true
		}
	}
	return false
}

// framework is what ran, "" where the file does not show it.
func (k *kineto) framework() string {
	switch k.name() {
	case "JAX's profiler":
		return "jax"
	case "torch.profiler", "torch.autograd.profiler":
		return "pytorch"
	}
	return ""
}

func (k *kineto) warnings(d *description) {
	if k.cut != "" {
		d.warnings = append(d.warnings, event.Warning{Kind: "cut", Source: k.path, Count: 1, Detail: fmt.Sprintf(
			"%s: %s after %d events: these are imported, and what followed is missing, such as later events, the rank and the names of devices",
			k.path, k.cut, k.events)})
	}
	if k.mended > 0 {
		d.warnings = append(d.warnings, event.Warning{Kind: "import", Source: k.path, Count: k.mended,
			Detail: fmt.Sprintf("%d events have quotation marks without a backslash in their names: read as part of the names", k.mended)})
	}
	for cat, n := range k.unknown {
		d.warnings = append(d.warnings, event.Warning{Kind: "import", Source: cat, Count: n, Detail: fmt.Sprintf(
			"%d events of the unknown category %.80q are imported by the names of their processes: as device activity where these are devices, "+
				"else as scopes",
			n, cat)})
	}
	for kind, n := range k.left {
		d.warnings = append(d.warnings, event.Warning{Kind: "import", Source: kind, Count: n,
			Detail: fmt.Sprintf("%d events of kind %q of the trace have no table in a dataset and were dropped", n, kind)})
	}
}
