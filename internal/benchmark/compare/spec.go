// Package compare reads ReFrame's comparison grammar, [SELECT/]SELECT/AGGREGATION:[GROUP]/[COLUMNS], and answers with the
// table that ReFrame's own functions make of the same results. What ReFrame leaves to the reader, whether a difference is
// more than noise, stands beside it.
package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Select chooses runs: by session or run, or by a period and an expression over sessions.
type Select struct {
	ID         string // of a session or a run; "last", "last-1" count from the newest session
	From, To   time.Time
	HasPeriod  bool
	Expression string // over a session's columns and extras; "" is none
}

// Aggregation makes one value of several.
type Aggregation struct{ Operator, Column string }

// Name is the name of its column in a table.
func (a Aggregation) Name() string { return a.Column + " (" + a.Operator + ")" }

// Spec is a comparison.
type Spec struct {
	Left, Right Select
	Operators   []Aggregation
	GroupBy     []string
	Columns     []string // without the names of the sides
	sides       map[string][]string
	order       []string // of Columns, each once
}

// defaultGroups are ReFrame's.
var defaultGroups = []string{"name", "sysenv", "pvar", "punit"}

// statistics is what "stats" stands for.
var statistics = []string{"min", "p01", "p05", "median", "p95", "p99", "max", "mean", "std"}

var (
	quantile   = regexp.MustCompile(`^p(\d{2})$`)
	ofColumn   = regexp.MustCompile(`^(\S+)\((\S+)\)$`)
	sessionID  = regexp.MustCompile(`^\d{8}T\d{6}Z-[0-9a-f]{6}(:\d+)?$`)
	fromLast   = regexp.MustCompile(`^last(-\d+)?$`)
	relative   = regexp.MustCompile(`^(.*)([+-]\d+)([mhdw])$`)
	operations = []string{"first", "last", "min", "max", "mean", "median", "std", "sum", "count"}
)

// The suffixes by which a column is chosen of one side only.
const (
	leftOnly  = "_L"
	rightOnly = "_R"
)

// Parse reads a comparison. With three parts the left side is the newest session.
func Parse(text string, now time.Time) (*Spec, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		parts = slices.Insert(parts, 0, "last")
	}
	if len(parts) != 4 {
		return nil, fmt.Errorf("comparison %q: give [SELECT/]SELECT/AGGREGATION:[GROUP]/[COLUMNS], such as last-1/last/mean:/", text)
	}
	s := &Spec{sides: map[string][]string{}}
	var err error
	if s.Left, err = parseSelect(parts[0], now); err != nil {
		return nil, err
	}
	if s.Right, err = parseSelect(parts[1], now); err != nil {
		return nil, err
	}
	operators, groups, ok := strings.Cut(parts[2], ":")
	if !ok || strings.Contains(groups, ":") {
		return nil, fmt.Errorf("aggregation %q: give AGGREGATION:[GROUP], such as mean: or p95:+environ", parts[2])
	}
	if s.Operators, err = parseAggregations(operators); err != nil {
		return nil, err
	}
	if s.GroupBy, err = parseColumns(groups, defaultGroups); err != nil {
		return nil, err
	}
	base := slices.Clone(s.GroupBy)
	for _, a := range s.Operators {
		if !slices.Contains(base, a.Column) {
			base = append(base, a.Column)
		}
	}
	columns, err := parseColumns(parts[3], base)
	if err != nil {
		return nil, err
	}
	s.setColumns(columns)
	return s, nil
}

// setColumns sorts out of which side each column is wanted.
func (s *Spec) setColumns(columns []string) {
	if !slices.ContainsFunc(columns, func(c string) bool { return c == "pval" || c == "pval"+leftOnly || c == "pval"+rightOnly }) {
		columns = append(columns, "pval")
	}
	for _, c := range columns {
		sides := []string{"lhs", "rhs"}
		switch {
		case strings.HasSuffix(c, leftOnly):
			c, sides = strings.TrimSuffix(c, leftOnly), sides[:1]
		case strings.HasSuffix(c, rightOnly):
			c, sides = strings.TrimSuffix(c, rightOnly), sides[1:]
		}
		if !slices.Contains(s.order, c) {
			s.order = append(s.order, c)
		}
		s.sides[c] = append(s.sides[c], sides...)
	}
	s.Columns = columns
}

func parseAggregations(text string) (all []Aggregation, err error) {
	for _, one := range strings.Split(text, ",") {
		column := "pval"
		if m := ofColumn.FindStringSubmatch(one); m != nil {
			one, column = m[1], m[2]
		}
		switch {
		case one == "stats":
			for _, operator := range statistics {
				all = append(all, Aggregation{operator, column})
			}
		case slices.Contains(operations, one) || quantile.MatchString(one):
			all = append(all, Aggregation{one, column})
		default:
			return nil, fmt.Errorf("unknown aggregation %q: one of %s, pNN (such as p95) and stats", one, strings.Join(operations, ", "))
		}
	}
	return all, nil
}

// parseColumns reads "a,b", which replaces what there is without it, or "+a+b", which adds to it.
func parseColumns(text string, base []string) ([]string, error) {
	base = slices.Clone(base)
	switch {
	case text == "":
		return base, nil
	case strings.HasPrefix(text, "+") && !strings.Contains(text, ","):
		for _, name := range strings.Split(text, "+") {
			if name != "" {
				base = append(base, name)
			}
		}
		return base, nil
	case strings.Contains(text, "+"):
		return nil, fmt.Errorf("columns %q: give either A,B in the place of the usual ones, or +A+B beside them", text)
	}
	return strings.Split(text, ","), nil
}

func parseSelect(text string, now time.Time) (s Select, err error) {
	if sessionID.MatchString(text) || fromLast.MatchString(text) {
		return Select{ID: text}, nil
	}
	period, expression, filtered := strings.Cut(text, "?")
	s.Expression = expression
	if filtered && expression == "" {
		return s, fmt.Errorf("%q: an expression over sessions has to follow the question mark", text)
	}
	if period == "" && filtered {
		return s, nil
	}
	from, to, ok := strings.Cut(period, ":")
	if !ok || strings.Contains(to, ":") {
		return s, fmt.Errorf("%q selects nothing: give a session, last, last-1, or a period such as now-7d:now", text)
	}
	s.HasPeriod = true
	if s.From, err = parseTime(from, now); err != nil {
		return s, err
	}
	s.To, err = parseTime(to, now)
	return s, err
}

// layouts are those of ReFrame. Times without a zone are local ones.
var layouts = []string{"20060102", "20060102T1504", "20060102T150405", "20060102T150405Z0700"}

func parseTime(text string, now time.Time) (time.Time, error) {
	if at, ok := absolute(text, now); ok {
		return at, nil
	}
	m := relative.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, fmt.Errorf("%q is no time: give now, now-7d, 20261127 or 20261127T1200", text)
	}
	at, ok := absolute(m[1], now)
	if !ok {
		return time.Time{}, fmt.Errorf("%q is no time: give now, now-7d, 20261127 or 20261127T1200", text)
	}
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no time: %w", text, err)
	}
	unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[m[3]]
	return at.Add(time.Duration(n) * unit), nil
}

func absolute(text string, now time.Time) (time.Time, bool) {
	if text == "now" {
		return now, true
	}
	for _, layout := range layouts {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
