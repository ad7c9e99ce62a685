package analysis_test

import (
	"context"
	"log"
	"os"

	"github.com/ebpfprof/ebpfprof/analysis"
)

// softmax is a rule of a team that has a kernel for attention, four times as fast as what
// softmax and its products take where attention is written by hand.
type softmax struct{}

func (softmax) Name() string { return "attention_by_hand" }

func (softmax) Look(ctx context.Context, r *analysis.Recording) ([]analysis.Accusation, error) {
	root, err := r.Contexts(ctx)
	if err != nil {
		return nil, err
	}
	own := 0.0
	for c := range root.All(analysis.HostNS) {
		if c.Kind == analysis.Operator && c.Name == "aten::softmax" {
			own += c.Own(analysis.HostNS).Sum
		}
	}
	if own < 0.05*root.Total(analysis.HostNS) {
		return nil, nil // not worth a word
	}
	pid, err := r.PID()
	if err != nil {
		return nil, err
	}
	const calls = "SELECT span_id FROM good_span WHERE name = 'aten::softmax' AND pid = "
	spans, err := r.Int64s(ctx, calls+"?", pid)
	if err != nil {
		return nil, err
	}
	return []analysis.Accusation{{
		Title:       "attention is written by hand",
		Advice:      "ours.attention does the same in one kernel.",
		EvidenceSQL: "SELECT input_dims, count(*) AS calls, sum(duration_ns) / 1e6 AS ms FROM good_span WHERE name = 'aten::softmax' GROUP BY ALL",
		Spans:       spans,
		Left:        0.25,
	}}, nil
}

// A dataset is asked a rule of somebody else's, and those of ebpfprof beside it.
func Example() {
	ctx := context.Background()
	recording, err := analysis.Open(ctx, "dataset")
	if err != nil {
		log.Fatal(err)
	}
	defer recording.Close()
	result, err := analysis.Run(ctx, recording, analysis.Options{Rules: []analysis.Rule{softmax{}}, BuiltIn: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := result.WriteText(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
