package explain

import (
	"fmt"
	"strings"
)

// chooseHost finds the recording that the thread that sets the pace is in, where the dataset has those of several hosts:
// what counters say of one machine says nothing of another.
func (r *Recording) chooseHost() error {
	var sessions int
	if err := r.db.Row(r.ctx, "SELECT count(DISTINCT session_id) FROM process", nil, &sessions); err != nil || sessions < 2 {
		return err
	}
	return r.db.Row(r.ctx, "SELECT coalesce(any_value(session_id), '') FROM process WHERE pid = ?", []any{r.Pace.PID}, &r.session)
}

// onHost is the part of a table that is of the host of the thread that sets the pace, to be read FROM.
func (r *Recording) onHost(table string) string {
	if r.session == "" {
		return table
	}
	return fmt.Sprintf("(SELECT * FROM %s WHERE session_id = '%s')", table, strings.ReplaceAll(r.session, "'", "''"))
}
