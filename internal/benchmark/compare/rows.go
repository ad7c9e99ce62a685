package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/benchmark/inventory"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/results"
	"github.com/ebpfprof/ebpfprof/internal/benchmark/store"
	"github.com/ebpfprof/ebpfprof/internal/dataset/query"
)

// Side is what a selection chose.
type Side struct {
	Rows        []Row
	Inventories []inventory.Inventory
	Runs        int
}

// Choose reads what a selection chooses from a store: the last attempt of each run, as ReFrame counts it.
func Choose(ctx context.Context, s *store.Store, c *store.Contents, of Select, names *regexp.Regexp) (*Side, error) {
	chosen, err := choice(ctx, s, c, of)
	if err != nil {
		return nil, err
	}
	side := &Side{}
	for i, run := range c.Runs {
		if !chosen(run) || names != nil && !names.MatchString(run.Name) || again(c.Runs[i+1:], run) {
			continue
		}
		side.Runs++
		var v inventory.Inventory
		if json.Unmarshal([]byte(run.Inventory), &v) == nil && len(v) > 0 {
			side.Inventories = append(side.Inventories, v)
		}
		for _, n := range c.Numbers[run.ID] {
			side.Rows = append(side.Rows, rowOf(run, n))
		}
	}
	return side, nil
}

// again says whether a later attempt of the same run follows.
func again(later []store.Run, run store.Run) bool {
	return slices.ContainsFunc(later, func(o store.Run) bool {
		return o.Session == run.Session && o.Name == run.Name && results.SysEnv(o) == results.SysEnv(run) && o.Repeat == run.Repeat &&
			o.Attempt > run.Attempt
	})
}

// rowOf is a number as the grammar knows it. Parameters are columns, too.
func rowOf(run store.Run, n store.Number) Row {
	row := Row{}
	var parameters map[string]string
	_ = json.Unmarshal([]byte(run.Parameter), &parameters)
	for name, value := range parameters {
		row[name] = value
	}
	maps.Copy(row, Row{"name": run.Name, "basename": run.Base, "sysenv": results.SysEnv(run), "system": run.System, "partition": run.Partition,
		"environ": run.Environ, "result": run.Result, "session": run.Session, "run": run.ID, "command": run.Command,
		"pvar": n.Name, "punit": n.Unit, "presult": n.Result, "pval": nil, "pref": nil, "plower": nil, "pupper": nil})
	for name, v := range map[string]*float64{"pval": n.Value, "pref": n.Ref, "plower": n.Lower, "pupper": n.Upper} {
		if v != nil {
			row[name] = *v
		}
	}
	return row
}

func choice(ctx context.Context, s *store.Store, c *store.Contents, of Select) (func(store.Run) bool, error) {
	if of.ID != "" {
		id, err := named(c, of.ID)
		if err != nil {
			return nil, err
		}
		if strings.Contains(id, ":") {
			return func(r store.Run) bool { return strings.HasPrefix(r.ID, id) }, nil
		}
		return func(r store.Run) bool { return r.Session == id }, nil
	}
	var sessions []string
	if of.Expression != "" {
		var err error
		if sessions, err = sessionsWhere(ctx, s, c, of.Expression); err != nil {
			return nil, err
		}
	}
	return func(r store.Run) bool {
		if of.HasPeriod && (r.Begin < of.From.UnixNano() || r.Begin > of.To.UnixNano()) {
			return false
		}
		return of.Expression == "" || slices.Contains(sessions, r.Session)
	}, nil
}

// named is a session or run by its name, or by its place before the newest session.
func named(c *store.Contents, id string) (string, error) {
	if !fromLast.MatchString(id) {
		session, _, run := strings.Cut(id, ":")
		if _, err := c.Session(session); err != nil {
			return "", err
		}
		if run && !slices.ContainsFunc(c.Runs, func(r store.Run) bool { return r.ID == id }) {
			return "", fmt.Errorf("session %s has no run %s", session, id)
		}
		return id, nil
	}
	back := 0
	if _, n, ok := strings.Cut(id, "-"); ok {
		back, _ = strconv.Atoi(n)
	}
	if back >= len(c.Sessions) {
		return "", fmt.Errorf("%s: the store has %d sessions only", id, len(c.Sessions))
	}
	return c.Sessions[len(c.Sessions)-1-back].ID, nil
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// sessionsWhere are the sessions of which an expression holds. It is over the columns of table bench_session, and over the
// names that --session-extras gave; texts may stand in quotes of either kind, as in Python.
func sessionsWhere(ctx context.Context, s *store.Store, c *store.Contents, expression string) (ids []string, err error) {
	db, err := query.Open(s.Root())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	names := map[string]bool{}
	for _, session := range c.Sessions {
		var extras map[string]string
		_ = json.Unmarshal([]byte(session.Extras), &extras)
		for name := range extras {
			names[name] = identifier.MatchString(name)
		}
	}
	columns := "*"
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] {
			columns += fmt.Sprintf(`, extras::JSON ->> '%s' AS "%s"`, name, name)
		}
	}
	result, err := db.Run(ctx, "SELECT DISTINCT session_id FROM (SELECT "+columns+" FROM "+store.SessionTable+") WHERE "+
		pythonText(expression))
	if err != nil {
		return nil, fmt.Errorf("selecting sessions by %q: %w", expression, err)
	}
	for _, row := range result.Rows {
		id, _ := row[0].(string)
		ids = append(ids, id)
	}
	return ids, nil
}

var doubleQuoted = regexp.MustCompile(`"([^"]*)"`)

// pythonText puts single quotes, which SQL has for texts, in the place of double ones.
func pythonText(expression string) string {
	return doubleQuoted.ReplaceAllStringFunc(expression, func(found string) string {
		return "'" + strings.ReplaceAll(found[1:len(found)-1], "'", "''") + "'"
	})
}

// Only leaves out all numbers but these.
func (s *Side) Only(numbers []string) {
	s.Rows = slices.DeleteFunc(s.Rows, func(r Row) bool { return !slices.Contains(numbers, text(r["pvar"])) })
}

// Of are the rows of one benchmark on one system.
func (s *Side) Of(name, sysenv string) (all []Row) {
	for _, r := range s.Rows {
		if r["name"] == name && r["sysenv"] == sysenv {
			all = append(all, r)
		}
	}
	return all
}
