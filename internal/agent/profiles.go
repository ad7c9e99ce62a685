package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/ebpfprof/ebpfprof/internal/agent/config"
	"github.com/ebpfprof/ebpfprof/internal/agent/spool"
	"github.com/ebpfprof/ebpfprof/internal/exchange/otlp"
	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
)

// profiles sends the samples of windows to a collector of OpenTelemetry's: workers write them
// where it reads.
type profiles struct {
	*outbox.Sender
	client *otlp.Client
}

// newProfiles returns what sends to the collector of the configuration as it is now.
func newProfiles(told func() config.Config) (*profiles, error) {
	c := told()
	queue, err := spool.Profiles(c.Spool)
	if err != nil {
		return nil, err
	}
	headers, err := otlp.Headers(os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrUnusable, err)
	}
	client := otlp.NewClient(func() string { return told().OTLP }, headers)
	return &profiles{outbox.NewSender(queue, client, func() int64 { return told().OTLPMB << 20 }), client}, nil
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
