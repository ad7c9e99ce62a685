package dataset

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
)

// pieceRows is about how many rows of a large scan are in memory at a time.
const pieceRows = 400_000

// Pieces cuts the time of a view with ts_ns so that each piece has about as many
// rows as memory should hold: piece i is from the i-th cut to the one before the
// next. DuckDB's driver holds the whole result of a query.
func (db *DB) Pieces(ctx context.Context, view string) ([]int64, error) {
	var rows int64
	var first sql.NullInt64
	if err := db.Row(ctx, "SELECT count(*), min(ts_ns) FROM "+identifier(view), nil, &rows, &first); err != nil {
		return nil, err
	}
	cuts := []int64{first.Int64}
	n := rows/pieceRows + 1
	if n > 1 {
		shares := make([]string, n-1)
		for i := range shares {
			shares[i] = fmt.Sprintf("%.9f", float64(i+1)/float64(n))
		}
		quantiles, err := db.Query(ctx, fmt.Sprintf(`SELECT DISTINCT unnest(approx_quantile(ts_ns, [%s]))::BIGINT AS t FROM %s ORDER BY t`,
			strings.Join(shares, ", "), identifier(view)))
		if err != nil {
			return nil, err
		}
		defer quantiles.Close()
		for quantiles.Next() {
			var t int64
			if err := quantiles.Scan(&t); err != nil {
				return nil, err
			}
			if t > cuts[len(cuts)-1] {
				cuts = append(cuts, t)
			}
		}
		if err := quantiles.Err(); err != nil {
			return nil, err
		}
	}
	return append(cuts, math.MaxInt64), nil
}
