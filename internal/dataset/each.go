package dataset

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// rowsBetweenLooks is after how many rows Each looks whether it is cancelled.
const rowsBetweenLooks = 4096

// Each calls row with the values of each row of a query: int64 for BIGINT, int32 for
// INTEGER, float64, bool, string, nil for NULL. The slice is used again. It is for
// millions of rows: database/sql's Scan converts each value by reflection, which takes
// longer than DuckDB takes to find it.
func (db *DB) Each(ctx context.Context, query string, row func([]driver.Value) error) error {
	err := db.conn.Raw(func(c any) error {
		queryer, ok := c.(driver.QueryerContext)
		if !ok {
			return errors.New("the DuckDB driver takes no queries")
		}
		rows, err := queryer.QueryContext(ctx, query, nil)
		if err != nil {
			return err
		}
		defer rows.Close()
		values := make([]driver.Value, len(rows.Columns()))
		for n := 1; ; n++ {
			switch err := rows.Next(values); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			if n%rowsBetweenLooks == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := row(values); err != nil {
				return err
			}
		}
	})
	return FirstLine(err)
}
