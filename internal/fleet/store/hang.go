package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
)

// HangTable has what agents knew of their ranks when those were blocked.
const HangTable = "hang"

// HangRow is a row of table hang: what one node knew of one of its processes in one group
// of ranks; of a process that is in no group that was seen, one without a group.
type HangRow struct {
	Job      string `parquet:"job,dict,zstd"`
	Host     string `parquet:"host,dict,zstd"`
	At       int64  `parquet:"ts_ns"`    // of the node's verdict
	Since    int64  `parquet:"since_ns"` // of the last sign that the job went on, there
	Kind     string `parquet:"kind,dict,zstd"`
	Sentence string `parquet:"sentence,dict,zstd"` // the node's verdict, of its own ranks alone

	PID          int32   `parquet:"pid"`
	Rank         *int32  `parquet:"rank,optional"` // of the job
	Ended        bool    `parquet:"ended"`
	Communicator *int64  `parquet:"communicator,optional"` // the same on every node
	Group        *string `parquet:"group_name,optional,dict,zstd"`
	GroupRank    *int32  `parquet:"group_rank,optional"`
	GroupRanks   *int32  `parquet:"group_ranks,optional"`
	Number       *int64  `parquet:"issued_number,optional"` // of the last collective that it asked for
	Collective   *string `parquet:"issued_name,optional,dict,zstd"`
	WaitNumber   *int64  `parquet:"open_number,optional"` // of the first that has not ended
	WaitName     *string `parquet:"open_name,optional,dict,zstd"`
	WaitNS       *int64  `parquet:"open_for_ns,optional"`
	Place        *string `parquet:"place,optional,zstd"`   // the innermost line of its own code
	Threads      *string `parquet:"threads,optional,zstd"` // where they stood, as JSON: as fleet hang --json has them
	Dump         *string `parquet:"dump,optional,zstd"`    // the directory on the host with the flight recorder's dumps
	Tool         string  `parquet:"tool_version,dict,zstd"`
}

// Hang is a node's verdict, and what it is of.
type Hang struct {
	Job, Tool string
	At, Since int64
	Verdict   *hang.Verdict
	Recording *hang.Recording
	Dump      string // "" without one
}

// PutHang keeps a verdict beside the job's patterns.
func PutHang(ctx context.Context, s Store, h Hang) error {
	rows, err := h.rows()
	if err != nil {
		return err
	}
	_, err = put(ctx, s, Partition{Table: HangTable, Job: h.Job, Host: h.Recording.Host, At: time.Unix(0, h.At)}, rows)
	return err
}

// mostThreads bounds the threads of a process as JSON, in bytes.
const mostThreads = 256 << 10

func (h *Hang) rows() (rows []HangRow, err error) {
	r := h.Recording
	common := HangRow{Job: readable(h.Job), Host: readable(r.Host), At: h.At, Since: h.Since, Kind: h.Verdict.Kind,
		Sentence: readable(h.Verdict.Sentence),
		Dump:     unlessZero(readable(h.Dump)), Tool: h.Tool}
	ranks, grouped := map[int64]*int64{}, map[int64]bool{}
	for _, p := range r.Processes {
		ranks[p.PID] = p.Rank
	}
	for _, m := range r.Members {
		row := common
		grouped[m.PID] = true
		row.PID, row.Rank, row.Ended = int32(m.PID), narrow(ranks[m.PID]), m.Ended
		row.Communicator, row.Group, row.Number, row.Collective = &m.Group, unlessZero(readable(m.Name)), m.Number,
			unlessZero(readable(m.Collective))
		row.GroupRank, row.GroupRanks = narrow(&m.Rank), narrow(&m.Ranks)
		of := hang.Of{Group: m.Group, PID: m.PID}
		row.Place = unlessZero(readable(r.Place(of)))
		if w, waits := r.Waits[of]; waits {
			ns := int64(w.Seconds * 1e9)
			row.WaitNumber, row.WaitName, row.WaitNS = &w.Number, unlessZero(readable(w.Collective)), &ns
		}
		if row.Threads, err = threadsText(r.Threads[m.PID]); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	for _, p := range r.Processes {
		if grouped[p.PID] {
			continue
		}
		row := common
		row.PID, row.Rank, row.Place = int32(p.PID), narrow(p.Rank), unlessZero(readable(r.Place(hang.Of{PID: p.PID})))
		if row.Threads, err = threadsText(r.Threads[p.PID]); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// threadsText is JSON of threads; of many, of the first that fit, the main one among them.
func threadsText(threads []hang.Thread) (*string, error) {
	for n := len(threads); n > 0; n /= 2 {
		text, err := json.Marshal(threads[:n])
		if err != nil {
			return nil, fmt.Errorf("writing where threads stood: %w", err)
		}
		if len(text) <= mostThreads {
			s := string(text)
			return &s, nil
		}
	}
	return nil, nil
}

func narrow(n *int64) *int32 {
	if n == nil {
		return nil
	}
	v := int32(*n)
	return &v
}
