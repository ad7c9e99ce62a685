package store

import (
	"context"
	"errors"
	"time"

	"github.com/ebpfprof/ebpfprof/internal/fleet/pattern"
)

// PatternRow is a row of table pattern. Shares are from 0 to 1 of the observed time.
type PatternRow struct {
	Session    string  `parquet:"session_id,dict,zstd"`
	Job        string  `parquet:"job,dict,zstd"`
	Host       string  `parquet:"host,dict,zstd"`
	PID        int32   `parquet:"pid"`
	Rank       *int32  `parquet:"rank,optional"`
	Begin      int64   `parquet:"begin_ns"`
	End        int64   `parquet:"end_ns"`
	Observed   int64   `parquet:"observed_ns"`
	Coverage   float64 `parquet:"coverage"`
	Function   int64   `parquet:"function_id"`
	Class      string  `parquet:"class,dict,zstd"`
	Name       string  `parquet:"name,dict,zstd"`
	Stack      *string `parquet:"stack,optional,dict,zstd"`
	File       *string `parquet:"file,optional,dict,zstd"`
	Line       *int32  `parquet:"line,optional"`
	Basis      string  `parquet:"basis,dict,zstd"`
	Beta       float64 `parquet:"beta"`
	BetaLo     float64 `parquet:"beta_lo"`
	BetaHi     float64 `parquet:"beta_hi"`
	Mu         float64 `parquet:"mu"`
	Sigma      float64 `parquet:"sigma"`
	Resource   string  `parquet:"resource,dict,zstd"`
	Count      int64   `parquet:"count"`
	Mean       *int64  `parquet:"mean_ns,optional"`
	P99        *int64  `parquet:"p99_ns,optional"`
	Longest    *int64  `parquet:"longest_ns,optional"`
	Preempted  float64 `parquet:"preempted"`
	Stopped    float64 `parquet:"stopped"`
	Wait       *string `parquet:"wait,optional,dict,zstd"`
	AnalysisID string  `parquet:"analysis_version,dict,zstd"`
}

// StepRow is a row of table worker_step.
type StepRow struct {
	Session string `parquet:"session_id,dict,zstd"`
	Job     string `parquet:"job,dict,zstd"`
	Host    string `parquet:"host,dict,zstd"`
	PID     int32  `parquet:"pid"`
	Rank    *int32 `parquet:"rank,optional"`
	Number  int64  `parquet:"number,delta"`
	Begin   int64  `parquet:"begin_ns,delta"`
	Period  int64  `parquet:"period_ns"`
	Wait    int64  `parquet:"wait_ns"`
	Load    *int64 `parquet:"load_ns,optional"`
	// The last collective that ended in the step, by which hosts' clocks are compared.
	Communicator *int64 `parquet:"communicator,optional"`
	Sequence     *int64 `parquet:"sequence_number,optional"`
	Exit         *int64 `parquet:"exit_ns,optional"`
}

// UploadRow is a row of table upload: what was sent of a recording, and what stayed.
type UploadRow struct {
	Session       string `parquet:"session_id,dict,zstd"`
	Job           string `parquet:"job,dict,zstd"`
	Host          string `parquet:"host,dict,zstd"`
	Begin         int64  `parquet:"begin_ns"`
	EventBytes    int64  `parquet:"event_bytes"`
	PatternBytes  int64  `parquet:"pattern_bytes"`
	LostWorkers   int64  `parquet:"lost_workers"`
	LostFunctions int64  `parquet:"lost_functions"`
	LostStacks    int64  `parquet:"lost_stacks"`
	Tool          string `parquet:"tool_version,dict,zstd"`
}

// AnalysisVersion changes when the meaning of a pattern does.
const AnalysisVersion = "2"

// ErrNothing is returned by Send for an upload without patterns.
var ErrNothing = errors.New("no worker made steps, so there are no patterns")

// Batch is what is sent of one recording.
type Batch struct {
	Session, Job, Host, Tool string
	Patterns                 []pattern.Pattern
	Steps                    []pattern.Step
	Lost                     pattern.Lost
	EventBytes               int64
}

// Send puts a batch into the store and says how many bytes that took.
func Send(ctx context.Context, s Store, b Batch) (bytes int64, err error) {
	if len(b.Patterns) == 0 {
		return 0, ErrNothing
	}
	b.Session, b.Job, b.Host, b.Tool = readable(b.Session), readable(b.Job), readable(b.Host), readable(b.Tool)
	at := time.Unix(0, b.Patterns[0].BeginNS)
	partition := func(table string) Partition { return Partition{Table: table, Job: b.Job, Host: b.Host, At: at} }
	patterns := make([]PatternRow, len(b.Patterns))
	for i := range b.Patterns {
		patterns[i] = b.patternRow(&b.Patterns[i])
	}
	steps := make([]StepRow, len(b.Steps))
	for i, st := range b.Steps {
		steps[i] = StepRow{Session: b.Session, Job: b.Job, Host: b.Host, PID: st.PID, Rank: unlessNegative(st.Rank), Number: st.Number,
			Begin:  st.BeginNS,
			Period: st.PeriodNS, Wait: st.WaitNS, Load: unlessNegative(st.LoadNS)}
		if e := st.Exit; e != nil {
			steps[i].Communicator, steps[i].Sequence, steps[i].Exit = &e.Communicator, &e.Number, &e.NS
		}
	}
	n, err := put(ctx, s, partition("worker_step"), steps)
	if err != nil {
		return 0, err
	}
	bytes += int64(n)
	if n, err = put(ctx, s, partition("pattern"), patterns); err != nil {
		return 0, err
	}
	bytes += int64(n)
	_, err = put(ctx, s, partition("upload"), []UploadRow{{b.Session, b.Job, b.Host, at.UnixNano(), b.EventBytes, bytes,
		b.Lost.Workers, b.Lost.Functions, b.Lost.Stacks, b.Tool}})
	return bytes, err
}

func (b Batch) patternRow(p *pattern.Pattern) PatternRow {
	return PatternRow{
		Session: b.Session, Job: b.Job, Host: b.Host, PID: p.PID, Rank: unlessNegative(p.Rank), Begin: p.BeginNS, End: p.EndNS,
		Observed: p.ObservedNS, Coverage: p.Coverage, Function: int64(p.Function), Class: string(p.Class), Name: readable(p.Name),
		Stack: unlessZero(readable(p.Stack)), File: unlessZero(readable(p.File)), Line: unlessZero(p.Line), Basis: string(p.Basis),
		Beta: p.Beta, BetaLo: p.BetaLo, BetaHi: p.BetaHi, Mu: p.Mu, Sigma: p.Sigma, Resource: p.Resource, Count: p.Count,
		Mean: unlessZero(p.MeanNS), P99: unlessZero(p.P99NS), Longest: unlessZero(p.LongestNS),
		Preempted: p.Preempted, Stopped: p.Stopped, Wait: unlessZero(readable(p.Wait)), AnalysisID: AnalysisVersion,
	}
}

func unlessNegative[T int32 | int64](v T) *T {
	if v < 0 {
		return nil
	}
	return &v
}

func unlessZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
