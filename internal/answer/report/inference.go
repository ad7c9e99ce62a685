package report

import "github.com/ebpfprof/ebpfprof/internal/model/timeline"

// phasesOfInference divides what the model computes into prefill and decode, by what each step does.
func (b *builder) phasesOfInference(took []map[string]int64, chosen []stepRow) {
	r := b.report.Inference
	if r == nil || len(took) != len(chosen) {
		return
	}
	kinds := r.Kinds()
	for i, step := range chosen {
		kind, ok := kinds[step.id]
		if ns := took[i][timeline.Forward]; ok && ns > 0 {
			delete(took[i], timeline.Forward)
			took[i][kind] += ns
		}
	}
}

func (r *Report) inferenceSection() section {
	s := section{title: "Inference"}
	if r.Inference != nil {
		for _, text := range r.Inference.Sentences() {
			s.note("%s", text)
		}
	}
	return s
}

// prefilled divides the forward phase of samples into prefill and decode, by the time of the steps that do either: samples
// do not say which step they are of.
func (b *builder) prefilled(p Phase) []Phase {
	r := b.report.Inference
	if r == nil || p.Phase != timeline.Forward {
		return []Phase{p}
	}
	share, ok := r.PrefillShare()
	if !ok {
		return []Phase{p}
	}
	part := func(name string, share float64) Phase {
		return Phase{Phase: name, MSPerStep: share * p.MSPerStep, Percent: share * p.Percent, Estimated: true}
	}
	return []Phase{part(timeline.Decode, 1-share), part(timeline.Prefill, share)}
}
