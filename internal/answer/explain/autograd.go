package explain

import (
	"database/sql"
	"fmt"
)

// leastAgain is which part of the backward nodes' time must be in nodes that run again.
const leastAgain = 0.1

// graphRunsAgain: backward nodes of one forward operator run more than once, which takes retain_graph=True (or
// create_graph=True): autograd gives each forward operator a sequence number of its own, and frees the graph otherwise.
func (r *Recording) graphRunsAgain() (e Explanation, is bool, err error) {
	var nodes, again, most sql.NullFloat64
	err = r.db.Row(r.ctx, `SELECT sum(ns), sum(ns * (n - 1) / n), max(n) FROM (
			SELECT sum(duration_ns)::DOUBLE AS ns, count(*) AS n FROM span
			WHERE pid = ? AND layer = 'autograd' AND category = 'node' AND sequence_number >= 0 AND duration_ns > 0
			GROUP BY session_id, tid, name, sequence_number)`,
		[]any{r.Pace.PID}, &nodes, &again, &most)
	if err != nil || nodes.Float64 == 0 || again.Float64 < leastAgain*nodes.Float64 {
		return e, false, err
	}
	claims := r.rows(func(row *Row) bool { return row.Stack.Has(signBackward) })
	for i := range claims {
		claims[i] = again.Float64 / nodes.Float64
	}
	if r.share(claims) < leastShare/2 {
		return e, false, nil
	}
	at := r.top(claims, innermost)
	e = Explanation{claims: claims, title: "backward passes over a retained graph"}
	if at != nil {
		e.Place = at.place()
	}
	e.sentence = fmt.Sprintf("%s of the time is backward passes at %s over a graph that an earlier one has already passed "+
		"(retain_graph=True): some nodes ran %.0f times.",
		percent(r.share(claims)), placeOr(at), most.Float64)
	e.Advice = "Where several losses share a graph, add them up and call backward() once; " +
		"where a state carries the graph from step to step, detach() it."
	return e, true, nil
}
