package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/ebpfprof/ebpfprof/internal/cli"
	"github.com/ebpfprof/ebpfprof/internal/cli/commands/answer"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/fleet/report"
	"github.com/ebpfprof/ebpfprof/internal/fleet/spark"
	"github.com/ebpfprof/ebpfprof/internal/fleet/store"
)

// localStore is a directory that has what a report of a store needs: the store itself,
// or, of a bucket, a copy of the --job's files since so long before its newest, which
// remove takes away.
func localStore(c *urfave.Context, location string, since time.Duration) (directory string, remove func(), err error) {
	s, err := store.Open(c.Context, location)
	if err != nil {
		return "", nil, err
	}
	bucket, ok := s.(*store.Bucket)
	if !ok {
		return location, func() {}, nil
	}
	if directory, err = os.MkdirTemp("", "ebpfprof-store-"); err != nil {
		return "", nil, fmt.Errorf("creating a directory for a copy of the store: %w", err)
	}
	remove = func() { os.RemoveAll(directory) }
	progress := answer.NewProgress(c)
	defer progress.End()
	err = store.Mirror(c.Context, bucket, c.String("job"), since, directory, func(done, of int) {
		progress.Say("fetching %d of %d files", done, of)
	})
	if err != nil {
		remove()
		return "", nil, err
	}
	return directory, remove, nil
}

// openStore opens a store for answers: of a bucket a copy, which closing takes away.
func openStore(c *urfave.Context, location string, since time.Duration) (db *dataset.DB, closing func(), err error) {
	directory, remove, err := localStore(c, location, since)
	if err != nil {
		return nil, nil, cli.Failed(err)
	}
	if db, err = answer.Open(c, filepath.Join(directory, store.Version)); err != nil {
		remove()
		return nil, nil, err
	}
	return db, func() { db.Close(); remove() }, nil
}

// openEngine opens a store in what --engine says.
func openEngine(c *urfave.Context, location string) (report.Source, func(), error) {
	switch engine := c.String("engine"); {
	case engine == "duckdb" && c.IsSet("master"):
		return nil, nil, cli.Mistaken(errors.New("--master is Spark's: give --engine spark with it"))
	case engine == "duckdb":
		return openStore(c, location, c.Duration("since"))
	case engine != "spark":
		return nil, nil, cli.Usagef("--engine %q: choose duckdb or spark", engine)
	case store.IsBucket(location) && !spark.OnThisMachine(c.String("master")):
		return nil, nil, cli.Mistaken(errors.New("the workers of a cluster have no copy of a bucket: take --master 'local[*]', or " +
			"--engine duckdb"))
	}
	directory, remove, err := localStore(c, location, c.Duration("since"))
	if err != nil {
		return nil, nil, cli.Failed(err)
	}
	session, err := openSpark(c, filepath.Join(directory, store.Version))
	if err != nil {
		remove()
		return nil, nil, cli.Failed(err)
	}
	return session, func() { session.Close(); remove() }, nil
}

func openSpark(c *urfave.Context, directory string) (*spark.Session, error) {
	files, err := dataset.List(directory)
	if err != nil {
		return nil, err
	}
	answer.Warn(c, files.Warnings)
	return spark.Open(c.Context, c.String("master"), files.Files)
}
