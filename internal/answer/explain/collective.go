package explain

import (
	"database/sql"
	"fmt"
)

// smallCollective is how many bytes a collective of many carries at most, and how many a step are many.
const (
	smallCollective = 1 << 20
	manyCollectives = 20
)

// collectives: the thread is in collectives, and whether they are many and small or the ranks come apart.
func collectives(r *Recording) ([]Explanation, error) {
	claims := r.rows(func(row *Row) bool { return row.Stack.Has(signCollective) })
	if r.share(claims) < leastShare/2 {
		return nil, nil
	}
	at := r.top(claims, func(row *Row) *Frame { return row.Stack.Innermost() })
	e := Explanation{claims: claims, title: "collectives"}
	where := ""
	if at != nil {
		e.Place = at.place()
		where = " at " + at.at()
	}
	if late, ok := r.lateRank(claims); ok {
		e.title, e.sentence, e.Place = "waiting for a slower rank", late.sentence, late.place
		e.Advice = "Balance the ranks' work there: the same number and size of samples, no work that one rank does alone."
		return []Explanation{e}, nil
	}
	if objects, ok := r.ofObjects(claims, where); ok {
		return []Explanation{objects}, nil
	}
	var calls, mean sql.NullFloat64
	var name sql.NullString
	err := r.db.Row(r.ctx, `SELECT sum(weight), avg(bytes), mode(name) FROM span WHERE pid = ? AND layer = 'collective'
		AND category IN ('collective', 'issue')`,
		[]any{r.Pace.PID}, &calls, &mean, &name)
	if err != nil {
		return nil, err
	}
	e.sentence = fmt.Sprintf("%s of the time the thread is in collectives%s.", percent(r.share(claims)), where)
	e.Advice = "Overlap communication with the backward pass, send less (a smaller type, larger accumulation), or use a faster network."
	n := float64(len(r.steps.all))
	if r.Loop != nil && n > 0 && calls.Float64 > 0 {
		each := calls.Float64 / n
		if each >= manyCollectives && mean.Valid && mean.Float64 < smallCollective {
			e.title = "many small collectives"
			e.sentence = fmt.Sprintf("%s of the time goes to many small collectives%s: about %.0f small collectives a step of %s on average.",
				percent(r.share(claims)), where, each, bytes(mean.Float64))
			e.Advice = "Put gradients into one flat buffer or bucket and reduce that once (DistributedDataParallel's buckets do it): each call costs its latency, however small it is."
		}
	}
	return []Explanation{e}, nil
}

// ofObjects: most of the time in collectives is in those of Python objects, which pickle them and send the bytes.
func (r *Recording) ofObjects(claims map[int]float64, where string) (e Explanation, ok bool) {
	objects := r.withSign(claims, signObjects)
	if r.sum(objects) <= r.sum(claims)/2 {
		return e, false
	}
	e = Explanation{claims: claims, title: "collectives of Python objects"}
	at := r.top(objects, innermost)
	if at != nil {
		e.Place = at.place()
	}
	name := ""
	if f := r.top(objects, func(row *Row) *Frame {
		for _, f := range pythonOutermostFirst(row.Stack) {
			if f.Signs&signObjects != 0 {
				return f
			}
		}
		return nil
	}); f != nil {
		name = " (" + f.name() + ")"
	}
	e.sentence = fmt.Sprintf("%s of the time goes to collectives of Python objects%s%s: they pickle the objects, and all ranks wait until "+
		"the bytes of all are there.", percent(r.share(claims)), name, where)
	e.Advice = "Send tensors instead (all_gather_into_tensor, all_reduce of sums), only what is needed, and every N steps."
	return e, true
}

// leastSkew is by how much of the time ranks must differ in waiting for each other.
const leastSkew = 0.15

type lateRank struct{ sentence, place string }

// lateRank is the rank that spends clearly less time in collectives than the pace-setting thread: it comes last, and what
// it does meanwhile is what the others wait for.
func (r *Recording) lateRank(claims map[int]float64) (lateRank, bool) {
	main := map[int32]float64{}
	for i := range r.Others {
		row := &r.Others[i]
		p := r.Processes[row.PID]
		if p == nil || p.Rank == nil || row.PID == r.Pace.PID || row.TID != row.PID {
			continue
		}
		if _, ok := main[row.PID]; !ok {
			main[row.PID] = 0
		}
		if row.Stack.Has(signCollective) {
			main[row.PID] += row.NS
		}
	}
	var latest *Process
	for pid, ns := range main {
		if p := r.Processes[pid]; latest == nil || ns < main[latest.PID] || ns == main[latest.PID] && pid < latest.PID {
			latest = p
		}
	}
	if latest == nil || r.sum(claims)-main[latest.PID] < leastSkew*r.Wall() {
		return lateRank{}, false
	}
	lines := map[*Frame]float64{}
	for i := range r.Others {
		if row := &r.Others[i]; row.PID == latest.PID && row.TID == row.PID && !row.Stack.Has(signCollective) && row.Stack.Innermost() != nil {
			lines[row.Stack.Innermost()] += row.NS
		}
	}
	for i := range r.Rows {
		if f := r.Rows[i].Stack.Innermost(); f != nil && !r.Rows[i].Stack.Has(signCollective) {
			lines[f] -= r.Rows[i].NS
		}
	}
	var most *Frame
	for f, ns := range lines {
		if most == nil || ns > lines[most] || ns == lines[most] && byPlace(f, most) < 0 {
			most = f
		}
	}
	if most == nil {
		return lateRank{}, false
	}
	return lateRank{fmt.Sprintf("%s of the time the thread waits in collectives for rank %d, which spends %s more of the time at %s than "+
		"this rank does.",
		percent(r.share(claims)), *latest.Rank, percent(lines[most]/r.Wall()), most.at()), most.place()}, true
}

// synchronisation: the thread waits for a device.
func synchronisation(r *Recording) ([]Explanation, error) {
	claims := r.rows(func(row *Row) bool { return row.Stack.Has(signDeviceSync) })
	if r.share(claims) < leastShare/2 {
		return nil, nil
	}
	at := r.top(claims, innermost)
	e := Explanation{claims: claims, title: "waiting for the device"}
	where := ""
	if at != nil {
		e.Place, where = at.place(), " at "+at.at()
	}
	e.sentence = fmt.Sprintf("%s of the time the thread waits for the device%s.", percent(r.share(claims)), where)
	e.Advice = "Fetch values (.item(), .cpu(), print) less often, so that the host runs ahead of the device; where the device is busy all the time, it is the limit."
	return []Explanation{e}, nil
}

// interpreterLock: the thread waits for the interpreter's lock, which another thread holds.
func interpreterLock(r *Recording) ([]Explanation, error) {
	claims := r.rows(func(row *Row) bool { return row.isGIL() && row.Cause != causePreempted })
	if r.share(claims) < leastShare/2 {
		return nil, nil
	}
	holds := map[int]float64{}
	for i := range r.Others {
		if r.Others[i].PID == r.Pace.PID && r.Others[i].GIL {
			holds[i] = 1
		}
	}
	e := Explanation{claims: claims, title: "the interpreter's lock (GIL)"}
	e.sentence = fmt.Sprintf("%s of the time the thread waits for Python's global lock (GIL).", percent(r.share(claims)))
	if all := heaviest(r.Others, holds, func(row *Row) *Frame { return row.Stack.Innermost() }, byPlace); len(all) > 0 {
		e.Place = all[0].of.place()
		e.sentence = fmt.Sprintf("%s of the time the thread waits for Python's global lock (GIL), which another thread holds at %s.",
			percent(r.share(claims)), all[0].of.at())
	}
	e.Advice = "Move that thread's work to another process, or into code that releases the lock."
	return []Explanation{e}, nil
}
