package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
	"github.com/ebpfprof/ebpfprof/internal/otlp"
)

// With otlp, the samples of windows go to a collector of OpenTelemetry's too. They take the
// way of patterns: the worker writes a file, the supervisor sends it.

// profilesName is the directory of the spool in which they wait.
const profilesName = "profiles"

func (c *Config) queue() (*store.Directory, error) {
	return outbox.Open(filepath.Join(c.Spool, profilesName))
}

// samples adds up a window's for a collector; nil without one.
func (c *Config) samples(frequency int) *otlp.Window {
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
	content, begin, err := samples.Request(w.job.Name, w.host, cli.Version)
	if errors.Is(err, otlp.ErrNothing) {
		return
	}
	if err == nil {
		err = w.config.wait(ctx, store.Partition{Table: "profile", Job: w.job.Name, Host: w.host, At: time.Unix(0, begin)}, content)
	}
	if err != nil {
		w.status.Unwritten++
		w.say(w.status.State, fmt.Sprintf("a window's samples are not sent to the collector: %v", err))
	}
}

// wait puts a request into the queue.
func (c *Config) wait(ctx context.Context, p store.Partition, content []byte) error {
	queue, err := c.queue()
	if err != nil {
		return err
	}
	return queue.Put(context.WithoutCancel(ctx), strings.TrimSuffix(p.Key(content), ".parquet")+".pb.gz", content)
}

// profiles sends them.
type profiles struct {
	*outbox.Sender
	client *otlp.Client
}

// newProfiles returns what sends to the collector of the configuration as it is now.
func newProfiles(config func() Config) (*profiles, error) {
	c := config()
	queue, err := c.queue()
	if err != nil {
		return nil, err
	}
	headers, err := otlp.Headers(os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	client := otlp.NewClient(func() string { return config().OTLP }, headers)
	return &profiles{outbox.NewSender(queue, client, func() int64 { return config().OTLPMB << 20 }), client}, nil
}

// sending is the store's, and says when the collector refuses profiles.
func (p *profiles) sending(ctx context.Context, log *slog.Logger) {
	var refused int64
	sending(ctx, p.Sender, log, "the collector", "profiles", func() {
		if n, why := p.client.Refused(); n > refused {
			log.Error("the collector refuses profiles", "so_far", n, "error", why)
			refused = n
		}
	})
}
