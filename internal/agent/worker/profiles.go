package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/exchange/otlp"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/version"
)

// With otlp, the samples of windows go to a collector of OpenTelemetry's too. They take the
// way of patterns: the worker writes a file, the supervisor sends it.

// samplesOf adds up a window's for a collector; nil without one.
func samplesOf(c *config.Config, frequency int) *otlp.Window {
	if c.OTLP == "" {
		return nil
	}
	return otlp.NewWindow(frequency)
}

// export writes a window's samples for the collector. What a full disk does not take is
// dropped and counted.
func (w *worker) export(ctx context.Context, samples *otlp.Window) {
	if samples == nil {
		return
	}
	w.status.Cut += samples.Dropped()
	content, begin, err := samples.Request(w.job.Name, w.host, version.Version)
	if errors.Is(err, otlp.ErrNothing) {
		return
	}
	if err == nil {
		err = spool.PutProfile(ctx, w.config.Spool, store.Partition{Table: "profile", Job: w.job.Name, Host: w.host, At: time.Unix(0, begin)},
			content)
	}
	if err != nil {
		w.status.Unwritten++
		w.say(w.status.State, fmt.Sprintf("a window's samples are not sent to the collector: %v", err))
	}
}
