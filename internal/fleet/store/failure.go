package store

import (
	"context"
	"slices"
	"time"
)

// FailureTable has what agents saw go wrong in processes.
const FailureTable = "failure"

// FailureRow is a row of table failure: memory without room, a call's error, or a process
// that died.
type FailureRow struct {
	Job      string `parquet:"job,dict,zstd"`
	Host     string `parquet:"host,dict,zstd"`
	At       int64  `parquet:"ts_ns"`
	Kind     string `parquet:"kind,dict,zstd"` // out_of_memory, runtime_error, died
	PID      int32  `parquet:"pid"`
	Rank     *int32 `parquet:"rank,optional"`
	Sentence string `parquet:"sentence,zstd"`
	Place    string `parquet:"place,zstd"` // the innermost line of the job's own code; "" is not known
	Dump     string `parquet:"dump,zstd"`  // the dataset of the last moments on the host; "" without
	Tool     string `parquet:"tool_version,dict,zstd"`
}

// PutFailures keeps failures of one job and host, the oldest first, beside the job's patterns.
func PutFailures(ctx context.Context, s Store, all []FailureRow) error {
	if len(all) == 0 {
		return nil
	}
	partition := Partition{Table: FailureTable, Job: all[0].Job, Host: all[0].Host, At: time.Unix(0, all[0].At)}
	rows := slices.Clone(all)
	for i := range rows {
		f := &rows[i]
		f.Job, f.Host, f.Sentence, f.Place, f.Dump = readable(f.Job), readable(f.Host), readable(f.Sentence), readable(f.Place), readable(f.Dump)
	}
	_, err := put(ctx, s, partition, rows)
	return err
}
