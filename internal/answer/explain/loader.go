package explain

import (
	"fmt"
	"strings"
)

// loader: the training thread waits in PyTorch's data loader, and what the loader does meanwhile.
func loader(r *Recording) ([]Explanation, error) {
	next := r.rows(func(row *Row) bool { return row.Stack.Has(signLoaderNext | signLoaderStart) })
	if r.share(next) < leastShare/2 {
		return nil, nil
	}
	at := r.top(next, func(row *Row) *Frame { return row.Stack.userAbove(signLoaderNext | signLoaderStart) })
	starts := r.rows(func(row *Row) bool {
		return row.Stack.Has(signLoaderStart) && !row.Stack.Has(signSubprocess|signWorker) || row.Stack.Has(signLoaderStart)
	})
	e := Explanation{claims: next, title: "waiting for data"}
	if at != nil {
		e.Place = at.place()
	}
	restarted := r.restartedWorkers()
	if r.share(starts) > r.share(next)/2 || restarted > 0 {
		e.title = "loader workers are started again and again"
		e.sentence = fmt.Sprintf("%s of the time the data loader starts and stops its workers%s.", percent(r.share(next)), under(at))
		if restarted > 0 {
			e.sentence = fmt.Sprintf("%s of the time the training waits for loader workers that are started again and again%s: %d in %.0f s.",
				percent(r.share(next)), under(at), restarted, r.Wall()/1e9)
		}
		e.Advice = "Workers are started anew for each iteration over the loader: pass persistent_workers=True, or make one pass longer."
		return []Explanation{e}, nil
	}
	workers := r.workerRows()
	if len(workers) == 0 {
		return []Explanation{r.loadsItself(e, next, at)}, nil
	}
	busy, total := 0.0, 0.0
	for _, i := range workers {
		row := &r.Others[i]
		total += row.NS
		if row.OnCPU || row.Cause == causePreempted {
			busy += row.NS
		}
	}
	claims := map[int]float64{}
	for _, i := range workers {
		if row := &r.Others[i]; row.OnCPU || row.Cause == causePreempted || busy < total/4 && row.Stack.userBelow(signWorker) != nil {
			claims[i] = 1
		}
	}
	places := heaviest(r.Others, claims, func(row *Row) *Frame { return row.Stack.userBelow(signWorker) }, byPlace)
	count := map[int32]bool{}
	for _, i := range workers {
		count[r.Others[i].PID] = true
	}
	e.sentence = fmt.Sprintf("%s of the time the training waits for its data loader%s.", percent(r.share(next)), under(at))
	if len(places) > 0 {
		f := places[0].of
		e.Place = f.place()
		held := 0.0
		for i := range claims {
			held += r.Others[i].NS
		}
		doing, image := r.workersDo(claims, f)
		e.sentence = fmt.Sprintf("%s of the time the training waits for its data loader, whose %d workers spend %s of theirs at %s%s.",
			percent(r.share(next)), len(count),
			percent(places[0].ns/max(held, 1)), f.at(), doing)
		e.Advice = "Do less for each sample there, do it ahead of time, or use more workers (num_workers) if CPUs are left."
		if call := r.workersWait(claims, f); busy < total/4 && call != "" {
			e.sentence = fmt.Sprintf("%s of the time the training waits for its data loader, whose %d workers wait %s of their time at %s, in the "+
				"system call %s.",
				percent(r.share(next)), len(count), percent(places[0].ns/max(held, 1)), f.at(), call)
			e.Advice = "More workers (num_workers) wait at the same time and cost no CPU; else ask for several samples at once, or keep a copy near."
			if call == "flock" || call == "fcntl" {
				e.Advice = "The lock lets one worker in at a time, so that more workers do not help: " +
					"give each a file of its own, or hold it for less."
			}
		} else if image {
			e.Advice = "Decode less: let the decoder scale (Image.draft, or a smaller size), or store the images resized; more workers (num_workers) help only if CPUs are left."
		}
	}
	return []Explanation{e}, nil
}

// restartedWorkers is how many processes of the loader began during the recording, 0 if a pass over the data could have
// started so many.
func (r *Recording) restartedWorkers() (n int) {
	seen := map[int32]bool{}
	lived := 0.0
	for _, i := range r.workerRows() {
		p := r.Processes[r.Others[i].PID]
		if p == nil || seen[p.PID] || p.StartedNS < r.From {
			continue
		}
		seen[p.PID] = true
		n++
		lived += float64(r.Until - p.StartedNS)
	}
	// Workers of one pass begin together: many that begin over all of the recording belong to many passes.
	if n < 6 || lived/float64(n) > 0.9*r.Wall() {
		return 0
	}
	return n
}

func under(f *Frame) string {
	if f == nil {
		return ""
	}
	return " at " + f.at()
}

// workerRows are the rows of the loader's worker processes.
func (r *Recording) workerRows() (rows []int) {
	for i := range r.Others {
		if r.Others[i].PID != r.Pace.PID && (r.Others[i].Stack.Has(signWorker) || r.Threads[r.Others[i].Thread] == "pt_data_worker") {
			rows = append(rows, i)
		}
	}
	return rows
}

// workersWait is the system call that workers wait in at a line, "" if they do not wait there.
func (r *Recording) workersWait(claims map[int]float64, at *Frame) string {
	here := map[int]float64{}
	for i, part := range claims {
		if row := &r.Others[i]; !row.OnCPU && row.Cause == "syscall" && row.Stack.userBelow(signWorker) == at {
			here[i] = part
		}
	}
	if calls := heaviest(r.Others, here, func(row *Row) string { return row.Syscall }, strings.Compare); len(calls) > 0 &&
		calls[0].of != "futex" {
		return calls[0].of
	}
	return ""
}

// workersDo is what the workers do at a line, in words.
func (r *Recording) workersDo(claims map[int]float64, at *Frame) (text string, image bool) {
	total, images := 0.0, 0.0
	here := map[int]float64{}
	for i, part := range claims {
		if r.Others[i].Stack.userBelow(signWorker) != at {
			continue
		}
		here[i] = part
		total += r.Others[i].NS
		if r.Others[i].Stack.below(signImage) {
			images += r.Others[i].NS
		}
	}
	if images > total/2 {
		image = true
		text = ", decoding images"
	}
	called := heaviest(r.Others, here, func(row *Row) *Frame { return row.Stack.Called() }, byPlace)
	if len(called) > 0 && called[0].ns > total/2 {
		text += fmt.Sprintf(" in %s (%s)", called[0].of.name(), library(called[0].of))
	}
	return text, image
}

// loadsItself: the training thread fetches samples itself (num_workers=0).
func (r *Recording) loadsItself(e Explanation, next map[int]float64, at *Frame) Explanation {
	inside := r.top(next, func(row *Row) *Frame {
		if f := row.Stack.Innermost(); f != nil && f != at && row.Stack.userAbove(signLoaderNext) != f {
			return f
		}
		return nil
	})
	e.sentence = fmt.Sprintf("%s of the time the %s fetches data itself%s.", percent(r.share(next)), r.worker(), under(at))
	if inside != nil {
		e.Place = inside.place()
		here := map[int]float64{}
		for i, part := range next {
			if r.Rows[i].Stack.Innermost() == inside {
				here[i] = part
			}
		}
		e.sentence = fmt.Sprintf("%s of the time the %s loads its data itself, most of it at %s%s.", percent(r.share(next)), r.worker(),
			inside.at(), r.inside(here).text)
	} else if lib := r.deepestLibrary(next); lib != nil {
		e.Evidence = fmt.Sprintf("Most of it is in %s (%s).", lib.name(), library(lib))
	}
	e.Advice = "Use loader workers (num_workers), or do less for each sample: prepare the data ahead of time."
	return e
}
