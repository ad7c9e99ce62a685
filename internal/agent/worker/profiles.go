package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/otlp"
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
	if err := Export(ctx, w.config, w.job.Name, w.host, samples); err != nil {
		w.status.Unwritten++
		w.say(w.status.State, fmt.Sprintf("a window's samples are not sent to the collector: %v", err))
	}
}

// Export has a window's samples wait in the spool, from where the supervisor sends them.
func Export(ctx context.Context, c config.Config, job, host string, samples *otlp.Window) error {
	content, begin, err := samples.Request(job, host, cli.Version)
	switch {
	case errors.Is(err, otlp.ErrNothing):
		return nil
	case err != nil:
		return err
	}
	queue, err := spool.Profiles(c.Spool)
	if err != nil {
		return err
	}
	at := store.Partition{Table: "profile", Job: job, Host: host, At: time.Unix(0, begin)}
	return queue.Put(context.WithoutCancel(ctx), strings.TrimSuffix(at.Key(content), ".parquet")+".pb.gz", content)
}
