package dataset

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/output"
)

// ErrNewer is returned by Open for a dataset whose schema has a newer major
// version: its columns may mean something else.
var ErrNewer = errors.New("dataset of a newer version")

// versions compares what the sessions say with what this version knows. A newer
// minor version has columns that are not looked at; an older one lacks some,
// which are NULL.
func (db *DB) versions(ctx context.Context) error {
	rows, err := db.Query(ctx, "SELECT DISTINCT schema_version FROM session WHERE schema_version IS NOT NULL ORDER BY 1")
	if err != nil {
		return err
	}
	defer rows.Close()
	ours, _ := majorMinor(output.SchemaVersion)
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		theirs, ok := majorMinor(text)
		switch {
		case !ok:
			db.warnings = append(db.warnings, fmt.Sprintf("the schema's version %q is none: read as %s", text, output.SchemaVersion))
		case theirs[0] > ours[0]:
			return fmt.Errorf("%w: it has schema %s, and this ebpfprof reads up to %d.x: use the ebpfprof that wrote it, or a newer one", ErrNewer,
				text, ours[0])
		case theirs[0] == ours[0] && theirs[1] > ours[1]:
			db.warnings = append(db.warnings, fmt.Sprintf("it has schema %s, newer than %s: what was added since is not looked at", text,
				output.SchemaVersion))
		}
	}
	return rows.Err()
}

func majorMinor(version string) (parts [2]int, ok bool) {
	fields := strings.SplitN(version, ".", 3)
	if len(fields) < 2 {
		return parts, false
	}
	for i := range parts {
		n, err := strconv.Atoi(fields[i])
		if err != nil || n < 0 {
			return parts, false
		}
		parts[i] = n
	}
	return parts, true
}
