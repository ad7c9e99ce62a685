package report

import (
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/inference"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
)

// stepRow is one settled step on the training thread; the loop's own period ends
// at untilNS.
type stepRow struct {
	id               int64
	pid, tid         int
	beginNS, untilNS int64
	whole            bool // every row of it was recorded
	sliced           bool // probes of detail were in it
}

// steps takes the loop of the process with the most steps.
func (b *builder) steps() error {
	threads, err := timeline.Steps(b.ctx, b.db)
	if err != nil {
		return err
	}
	threads = b.within(threads)
	b.loops = threads
	all := timeline.Summarize(threads).Processes
	best := -1
	for i, p := range all {
		if want := b.options.Rank; want != nil && (p.Rank == nil || *p.Rank != *want) {
			continue
		}
		if p.Steps.Count == 0 {
			continue
		}
		if works := threads[i].Works; best < 0 || works && !threads[best].Works || works == threads[best].Works &&
			p.Steps.Count > all[best].Steps.Count {
			best = i
		}
	}
	if b.report.worker, err = b.workerOf(threads, best); err != nil {
		return err
	}
	if best < 0 {
		b.untold("steps: nothing that repeats was found on any thread")
		return nil
	}
	p := all[best]
	s := &Steps{
		PID: p.PID, TID: p.TID, Kind: string(p.Steps.Kind), Count: p.Steps.Count, Represented: p.Steps.Represented, Whole: p.Whole,
		Warmup: p.Warmup, Timed: p.Steps.Timed, Profiled: p.Steps.Profiled,
		Evaluate: p.Evaluate, Method: p.Method, Sequence: p.Sequence, PeriodMS: []float64{}, Unit: p.Unit, Trains: p.Trains,
		Confidence: p.Confidence,
	}
	for i, row := range p.List {
		if row.Kind != p.Steps.Kind && row.Kind != steps.Warmup {
			continue
		}
		end := row.EndNS
		if row.PeriodNS != nil {
			end = row.BeginNS + *row.PeriodNS
		}
		if threads[best].Steps[i].Profiled && p.Steps.Profiled > 0 {
			continue // its time is not the job's alone
		}
		step := stepRow{row.ID, p.PID, p.TID, row.BeginNS, end, row.Whole, threads[best].Steps[i].Sliced}
		if row.Kind == steps.Warmup {
			b.warmup = append(b.warmup, step)
			continue
		}
		if row.PeriodNS != nil {
			s.PeriodMS = append(s.PeriodMS, ms(*row.PeriodNS))
		}
		b.stepRows = append(b.stepRows, step)
	}
	b.settled(s, p.Steps)
	if stretched, ok := timeline.StretchedOf(threads[best].Of(p.Steps.Kind)); ok {
		b.stretched, s.Unsliced, s.UnslicedMS = &stretched, stretched.Between, &stretched.BetweenMS
	}
	if b.report.Inference, err = inference.Of(b.ctx, b.db, threads[best]); err != nil {
		return err
	}
	b.report.Steps, b.report.stretched = s, timeline.Note(threads[best:best+1])
	b.pace()
	return nil
}

// workerOf is what the thread that the report is about is called: a training thread only where something trains.
func (b *builder) workerOf(threads []timeline.Thread, best int) (string, error) {
	if best >= 0 {
		return threads[best].Worker(), nil
	}
	trains, err := timeline.Trains(b.ctx, b.db)
	if len(trains) > 0 {
		return "training thread", err
	}
	return "main thread", err
}

// within leaves out the steps that do not begin in the part of the recording that is looked at.
// They are found in all of it: a part may be too short to see what repeats.
func (b *builder) within(threads []timeline.Thread) (inside []timeline.Thread) {
	if b.part.From == 0 && b.part.Until == 0 {
		return threads
	}
	for _, t := range threads {
		var kept []timeline.Step
		for _, s := range t.Steps {
			if s.Begin >= b.part.From && (b.part.Until == 0 || s.Begin < b.part.Until) {
				kept = append(kept, s)
			}
		}
		if t.Steps = kept; len(kept) > 0 {
			inside = append(inside, t)
		}
	}
	return inside
}

// settled fills in the times; where nothing follows a step, all that there is of
// it is its duration.
func (b *builder) settled(s *Steps, l timeline.LoopSummary) {
	switch {
	case l.MeanMS != nil:
		s.MeanMS = *l.MeanMS
		if l.StddevMS != nil {
			s.StddevMS = *l.StddevMS
		}
		s.Slowest = Slowest{l.Slowest.Index, l.Slowest.MS}
	case len(b.stepRows) > 0:
		for i, row := range b.stepRows {
			took := ms(row.untilNS - row.beginNS)
			s.MeanMS += took / float64(len(b.stepRows))
			if took > s.Slowest.MS {
				s.Slowest = Slowest{i, took}
			}
		}
	}
}

func (s *Steps) sentence() string {
	unit := "step"
	if !s.Trains && s.Unit != "" {
		unit = s.Unit
	}
	text := fmt.Sprintf("1 %s of %s", unit, msText(s.MeanMS))
	if s.Count > 1 {
		text = fmt.Sprintf("%s of %s ± %s, the slowest %s (step %d)", timeline.CountedUnit(s.Count, unit), msText(s.MeanMS), msText(s.StddevMS),
			msText(s.Slowest.MS), s.Slowest.Index)
	}
	if s.Represented >= 1.01*float64(s.Count) {
		text += fmt.Sprintf("; of about %.0f, since steps themselves were recorded in slices", s.Represented)
	}
	if s.UnslicedMS != nil {
		if more := 100 * (s.MeanMS/(*s.UnslicedMS) - 1); more >= 1 {
			text += fmt.Sprintf("; the probes make the mean %.0f %% longer", more)
		}
	}
	if s.Warmup > 0 {
		text += fmt.Sprintf("; %d of them warm-up, which the times leave out", s.Warmup)
	}
	if s.Profiled > 0 {
		text += fmt.Sprintf("; in %d of them another profiler ran: they are slower, and the times leave them out", s.Profiled)
	}
	if s.ByCUPTI {
		text += "; CUPTI ran in all of them and made them longer; the recording does not measure by how much"
	}
	if s.Evaluate > 0 {
		text += fmt.Sprintf("; %d steps of evaluation beside them", s.Evaluate)
	}
	return text
}

// looked are the steps that can be looked into: settled ones with all their rows,
// else those of the warm-up, else, where no step has them, all settled ones.
func (b *builder) looked() (chosen []stepRow, which string) {
	for _, of := range []struct {
		rows  []stepRow
		which string
	}{{b.stepRows, "settled"}, {b.warmup, "warm-up"}} {
		for _, row := range of.rows {
			if row.whole {
				chosen = append(chosen, row)
			}
		}
		if len(chosen) > 0 {
			if len(chosen) == 1 {
				return chosen, fmt.Sprintf("1 %s step with all its rows", of.which)
			}
			return chosen, fmt.Sprintf("%d %s steps with all their rows", len(chosen), of.which)
		}
	}
	switch {
	case len(b.stepRows) == 1:
		return b.stepRows, "1 step, of which rows are missing: it lies between slices of the recording"
	case len(b.stepRows) > 0:
		return b.stepRows, fmt.Sprintf("%d steps, none of which has all its rows", len(b.stepRows))
	}
	return b.warmup, fmt.Sprintf("%d steps of the warm-up, none of which has all its rows", len(b.warmup))
}
