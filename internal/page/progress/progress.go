// Package progress is what a recorder writes to the page that shows its recording while it is made: a line of JSON a
// second on the page's standard input, whose end is the recorder's.
package progress

// Line is what the recorder knows and the dataset does not have yet.
type Line struct {
	Events        uint64            `json:"events"` // spans and memory events so far
	PerSecond     float64           `json:"events_per_second"`
	Samples       uint64            `json:"samples"`
	Hits          uint64            `json:"hits"` // of probes, recorded or not
	HitsPerSecond float64           `json:"hits_per_second"`
	Bytes         int64             `json:"bytes"` // written
	Lost          map[string]uint64 `json:"lost"`  // rows, by why
}
