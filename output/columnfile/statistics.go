package columnfile

import (
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/plain"
	"github.com/parquet-go/parquet-go/format"
)

// longestStatistic bounds what a text leaves in the footer. Longer ones get no
// statistics, which readers must expect anyway.
const longestStatistic = 128

func intStatistics(s *format.Statistics, k Kind, values []int64) {
	low, high := values[0], values[0]
	for _, v := range values[1:] {
		low, high = min(low, v), max(high, v)
	}
	s.MinValue, s.MaxValue = plainInt(k, low), plainInt(k, high)
}

func plainInt(k Kind, v int64) []byte {
	switch k {
	case Int32:
		return plain.Int32(int32(v))
	case Boolean:
		return []byte{byte(v)}
	default:
		return plain.Int64(v)
	}
}

// floatStatistics leaves them out when there is a NaN, and widens zeros to
// both signs, as the format asks.
func floatStatistics(s *format.Statistics, values []float64) {
	low, high := values[0], values[0]
	for _, v := range values {
		if math.IsNaN(v) {
			return
		}
		low, high = min(low, v), max(high, v)
	}
	if low == 0 {
		low = math.Copysign(0, -1)
	}
	if high == 0 {
		high = 0
	}
	s.MinValue, s.MaxValue = plain.Double(low), plain.Double(high)
}

// textStatistics leaves them out when the least is ”: parquet-go cannot write
// an empty statistic.
func textStatistics(s *format.Statistics, distinct []string) {
	low, high := slices.Min(distinct), slices.Max(distinct)
	if low == "" || len(low) > longestStatistic || len(high) > longestStatistic {
		return
	}
	s.MinValue, s.MaxValue = []byte(low), []byte(high)
}
