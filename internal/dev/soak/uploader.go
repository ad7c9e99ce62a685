package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ebpfprof/ebpfprof/output/columnfile"
)

// fastestRotation is how long a rotation and its pause are at the least: each waits
// for the disk twice.
const fastestRotation = 50 * time.Millisecond

// uploader takes the files of a dataset away that are written once, and counts what
// is in them.
type uploader struct {
	directory string
	turn      time.Duration
	rows      map[string]int64 // by table
	rotations int
	longest   time.Duration // of a rotation, since somebody last set it to 0
	again     int64         // rows of the files that are rewritten at each rotation
}

// numbered is a file that is written once: session, number.
var numbered = regexp.MustCompile(`-\d{6}\.parquet$`)

func (u *uploader) take() error {
	paths, err := filepath.Glob(filepath.Join(u.directory, "*", "[^.]*.parquet"))
	if err != nil {
		return err
	}
	var named []time.Time
	u.again = 0
	for _, path := range paths {
		table := filepath.Base(filepath.Dir(path))
		summary, err := columnfile.Check(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("a file that can be seen is not whole: %s: %w", path, err)
		}
		if !numbered.MatchString(path) {
			if table == "process" || table == "thread" || table == "library" {
				u.again += summary.Rows
			}
			continue
		}
		u.rows[table] += summary.Rows
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		changed := info.Sys().(*syscall.Stat_t).Ctim // when it got its name
		named = append(named, time.Unix(changed.Sec, changed.Nsec))
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	u.measure(named)
	return nil
}

// measure finds the rotations among the moments at which files got their names: those
// of one come close after each other.
func (u *uploader) measure(named []time.Time) {
	slices.SortFunc(named, time.Time.Compare)
	first := 0
	for i := range named {
		if i+1 < len(named) && named[i+1].Sub(named[i]) < u.turn/2 {
			continue
		}
		u.rotations++
		u.longest = max(u.longest, named[i].Sub(named[first]))
		first = i + 1
	}
}

// tables says how many rows were written.
func (u *uploader) tables(in time.Duration) string {
	var said []string
	for table, rows := range u.rows {
		said = append(said, fmt.Sprintf("%d rows of %s (%.0f a second)", rows, table, float64(rows)/in.Seconds()))
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}
