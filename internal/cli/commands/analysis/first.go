package analysis

import (
	"context"
	"io"
	"os"

	"github.com/ebpfprof/ebpfprof/internal/answer/report"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/text/terminal"
)

// hottest is how many lines of code the end of a recording shows.
const hottest = 5

// First writes what the report of a dataset begins with: the verdict and the hottest lines.
func First(ctx context.Context, path string, w io.Writer) error {
	db, err := dataset.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	line := terminal.NewLive(os.Stderr)
	r, err := report.Build(ctx, db, report.Options{Progress: func(what string) { line.Show("computing " + what) }})
	line.Show("")
	if err != nil {
		return err
	}
	style := report.Style{Top: hottest}
	if f, ok := w.(*os.File); ok {
		style.Width, style.Color = terminal.TextStyle(f)
	}
	return r.WriteFirst(w, style)
}
