package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// checkSelect refuses whatever is not one SELECT before any of it runs. DuckDB
// itself parses: it can serialise only SELECTs. The driver would run all
// statements but the last while it prepares, and a COPY could write into the
// dataset, which has to stay open to reads.
func (db *DB) checkSelect(ctx context.Context, query string) error {
	var serialised string
	if err := db.Row(ctx, "SELECT json_serialize_sql(CAST(? AS VARCHAR))::VARCHAR", []any{query}, &serialised); err != nil {
		return err
	}
	var parsed struct {
		Error      bool   `json:"error"`
		Type       string `json:"error_type"`
		Message    string `json:"error_message"`
		Statements []any  `json:"statements"`
	}
	if err := json.Unmarshal([]byte(serialised), &parsed); err != nil {
		return fmt.Errorf("parsing query: %w", err)
	}
	switch {
	case parsed.Error && parsed.Type == "parser":
		return fmt.Errorf("the query does not parse: %s", dataset.FirstLine(errors.New(parsed.Message)))
	case parsed.Error || len(parsed.Statements) != 1:
		return fmt.Errorf("%w (or WITH, FROM, DESCRIBE, SUMMARIZE, SHOW, EXPLAIN): a dataset is only read, by one statement at a time",
			ErrNotSelect)
	}
	return checkTableFunctions(parsed.Statements[0])
}

// harmless are the table functions that a query may call, by name or by a
// prefix that ends in '_'. Others change settings, write logs, run text as SQL
// or take raw pointers.
var harmless = []string{
	"range", "generate_series", "unnest", "repeat", "repeat_row", "histogram", "histogram_values", "summary",
	"json_each", "json_tree", "test_all_types", "icu_calendar_names", "pg_timezone_names",
	"glob", "read_", "parquet_", "duckdb_", "pragma_", "sniff_csv", // files of the dataset only: allowed_directories
}

// checkTableFunctions looks for calls of table functions in a serialised query.
func checkTableFunctions(node any) error {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			if err := checkTableFunctions(child); err != nil {
				return err
			}
		}
	case map[string]any:
		if n["type"] == "TABLE_FUNCTION" {
			function, _ := n["function"].(map[string]any)
			name, _ := function["function_name"].(string)
			if !isHarmless(strings.ToLower(name)) {
				return fmt.Errorf("%w: the table function %s is not available on a dataset", ErrNotSelect, name)
			}
		}
		for _, child := range n {
			if err := checkTableFunctions(child); err != nil {
				return err
			}
		}
	}
	return nil
}

func isHarmless(function string) bool {
	return slices.ContainsFunc(harmless, func(h string) bool {
		return function == h || strings.HasSuffix(h, "_") && strings.HasPrefix(function, h)
	})
}

// explainOptions is EXPLAIN with its options, after white space and comments.
var explainOptions = regexp.MustCompile(`(?i)^EXPLAIN(\s+ANALYZE)?(\s*\(\s*(ANALYZE|FORMAT)[\sA-Z_,]*\))?\s+`)

// splitExplain cuts EXPLAIN [ANALYZE] off a query. What is left is checked and
// run as it was checked: ANALYZE would run a COPY.
func splitExplain(query string) (explain, rest string) {
	trimmed := skipSpace(query)
	explain = explainOptions.FindString(trimmed)
	if explain == "" {
		return "", query
	}
	return explain, trimmed[len(explain):]
}

// skipSpace skips white space and comments.
func skipSpace(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s[2:], "*/")
		default:
			return s
		}
	}
}
