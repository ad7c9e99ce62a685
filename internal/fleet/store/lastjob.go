package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
)

// A report of a directory that is asked for no job takes the one whose patterns end last,
// and names the others. Of a bucket the keys say when files begin, and a recording that
// was uploaded as a whole may end hours later: of the jobs that begin last the footers of
// their newest files are asked.

const (
	mostJobs    = 50      // whose footers are asked
	newestFiles = 8       // of a job
	mostFooter  = 1 << 20 // bytes
)

// seenJob is a job of a bucket.
type seenJob struct {
	partition string
	newest    time.Time // the begin of its newest file
	end       int64     // of its newest patterns, ns
	files     []Entry   // one of its last day, and the manifest of that
}

// lastJob is the partition of the job whose patterns end last, when its newest file
// begins, and a file of each of the others.
func (b *Bucket) lastJob(ctx context.Context) (job string, newest time.Time, others []Entry, err error) {
	partitions, err := b.Partitions(ctx, patterns)
	if err != nil {
		return "", newest, nil, err
	}
	var jobs []seenJob
	for _, p := range partitions {
		at, err := b.newest(ctx, patterns+p+"/")
		if err != nil {
			return "", newest, nil, err
		}
		if !at.IsZero() {
			jobs = append(jobs, seenJob{partition: p, newest: at})
		}
	}
	slices.SortFunc(jobs, func(a, b seenJob) int {
		return cmp.Or(b.newest.Compare(a.newest), cmp.Compare(a.partition, b.partition))
	})
	jobs = jobs[:min(len(jobs), mostJobs)]
	if len(jobs) == 0 {
		return "", newest, nil, nil
	}
	for i := range jobs {
		if err := b.look(ctx, &jobs[i]); err != nil {
			return "", newest, nil, err
		}
	}
	last := slices.MaxFunc(jobs, func(a, b seenJob) int { return cmp.Compare(a.end, b.end) })
	for _, j := range jobs {
		if j.partition != last.partition {
			others = append(others, j.files...)
		}
	}
	return last.partition, last.newest, others, nil
}

// look finds out until when a job was seen.
func (b *Bucket) look(ctx context.Context, job *seenJob) error {
	day := job.newest.UTC().Format(dated)
	entries, err := b.counting(ctx, "pattern/"+job.partition+"/"+day)
	if err != nil {
		return err
	}
	var files []Entry
	for _, e := range entries {
		if e.At().IsZero() {
			job.files = append(job.files, e) // the manifest
		} else {
			files = append(files, e)
		}
	}
	slices.SortFunc(files, func(a, b Entry) int { return cmp.Or(b.At().Compare(a.At()), cmp.Compare(a.Key, b.Key)) })
	files = files[:min(len(files), newestFiles)]
	var whole []Entry
	for _, e := range files {
		end, err := b.end(ctx, e)
		switch {
		case errors.Is(err, errFooter), errors.Is(err, fs.ErrNotExist): // damaged, or merged meanwhile
			continue
		case err != nil:
			return err
		}
		whole = append(whole, e)
		job.end = max(job.end, end)
	}
	if len(whole) > 0 {
		job.files = append(job.files, slices.MinFunc(whole, func(a, b Entry) int { return cmp.Compare(a.Bytes, b.Bytes) }))
	}
	return nil
}

// end is the largest end_ns of a file of patterns, as its footer says.
func (b *Bucket) end(ctx context.Context, e Entry) (end int64, err error) {
	object, err := b.Get(ctx, e.Key)
	if err != nil {
		return 0, err
	}
	defer object.Close()
	at, ok := object.(io.ReaderAt)
	if !ok || e.Bytes < 12 {
		return 0, errFooter
	}
	var tail [8]byte
	if _, err := at.ReadAt(tail[:], e.Bytes-8); err != nil && !errors.Is(err, io.EOF) {
		return 0, b.told("reading the store", err)
	}
	if size := int64(binary.LittleEndian.Uint32(tail[:])); size > mostFooter || size > e.Bytes-8 {
		return 0, errFooter
	}
	f, err := parquet.OpenFile(at, e.Bytes, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return 0, errors.Join(errFooter, err)
	}
	found := false
	for _, group := range f.Metadata().RowGroups {
		for _, column := range group.Columns {
			name, most := column.MetaData.PathInSchema, column.MetaData.Statistics.MaxValue
			if len(name) == 1 && name[0] == "end_ns" && len(most) == 8 {
				end, found = max(end, int64(binary.LittleEndian.Uint64(most))), true
			}
		}
	}
	if !found {
		return 0, errFooter
	}
	return end, nil
}

var errFooter = errors.New("no footer of a file of patterns")
