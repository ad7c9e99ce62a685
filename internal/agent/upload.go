package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/outbox"
)

// sending empties the outbox until the context is done, and logs when where it goes goes
// away and comes back.
func sending(ctx context.Context, s *outbox.Sender, log *slog.Logger, where, what string, also func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	failure := ""
	for {
		select {
		case <-done:
			also()
			if left := s.State(); left.Files > 0 {
				log.Warn(what+" wait on this node for "+where, "files", left.Files, "bytes", left.Bytes, "error", left.Failure)
			}
			return
		case <-look.C:
		}
		also()
		switch now := s.State(); {
		case now.Failure != "" && failure == "":
			log.Error(where+" takes nothing; "+what+" wait on this node", "files", now.Files, "bytes", now.Bytes, "error", now.Failure)
			failure = now.Failure
		case now.Failure == "" && failure != "":
			log.Info(where+" takes "+what+" again", "files", now.Files)
			failure = ""
		}
	}
}
