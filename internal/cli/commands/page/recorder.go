package page

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/page"
	"github.com/ebpfprof/ebpfprof/internal/page/progress"
)

// said are the lines that the recorder of a dataset says of it.
type said chan progress.Line

// fromRecorder reads standard input; its end is the recorder's, and with it the page's.
func fromRecorder(end context.CancelFunc) said {
	lines := make(said)
	go func() {
		defer end()
		read(os.Stdin, lines)
	}()
	return lines
}

// read passes lines on as long as there are any.
func read(from io.Reader, lines said) {
	for in := json.NewDecoder(from); ; {
		var line progress.Line
		if in.Decode(&line) != nil {
			return
		}
		select {
		case lines <- line:
		case <-time.After(time.Second): // nobody takes lines yet
		}
	}
}

// to passes the lines to a page.
func (s said) to(server *page.Server) {
	for line := range s {
		server.Say(line)
	}
}

// once opens a dataset once the recorder has made it readable.
func once(ctx context.Context, path string, o page.Options) (*page.Server, error) {
	for {
		server, err := page.New(path, o)
		if !errors.Is(err, dataset.ErrNotDataset) && !errors.Is(err, fs.ErrNotExist) {
			return server, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
