package dataset

import (
	"context"
	"database/sql"
)

// Instead reads what a Scan takes: of a query with session_id, span_id and a duration in
// ns, NULL where the row is left out.
func (db *DB) Instead(ctx context.Context, query string) (map[Row]int64, error) {
	rows, err := db.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	instead := map[Row]int64{}
	for rows.Next() {
		var row Row
		var ns sql.NullInt64
		if err := rows.Scan(&row.Session, &row.ID, &ns); err != nil {
			return nil, err
		}
		instead[row] = Absent
		if ns.Valid {
			instead[row] = ns.Int64
		}
	}
	return instead, rows.Err()
}
