package event

// Batch is a set of rows on their way to a sink: a slice for each table, most of them
// empty. Within a batch, what a row refers to stands in a field before it or comes in an
// earlier batch: stacks before samples, slices before the rows that were recorded in them.
type Batch struct {
	Processes []Process // again with EndedNS set when one ends
	Threads   []Thread
	Libraries []Library
	// ShortProcesses are those that ended before they could be among Processes.
	ShortProcesses []ShortProcess
	Slices         []Slice
	Stacks         []Stack
	Samples        []Sample
	IO             []IO
	Spans          []Span
	Memory         []Memory
	Flows          []Flow
	Counters       []Counter
	// OpenCalls are the moments at which what is open has changed; each has all that was
	// open then, and replaces the one before.
	OpenCalls []OpenCalls
	Probes    []Probe // once, at the end
	// MergedTraces come after the end, when what another profiler wrote is read.
	MergedTraces []MergedTrace
	Warnings     []Warning
}

// Sink takes the events of a recording. Calls come from one goroutine.
//
// The batch and its slices are used again after the call returns: a sink that keeps rows
// copies them. What the pointers of a row point at does not change any more. A sink changes
// neither the batch nor its rows, for another sink may get them next: one that hands on
// something else copies the struct and replaces the tables that it changes, so that the
// others, and those that are added later, go with the copy.
type Sink interface {
	Write(*Batch) error
}

// Discard is a Sink that keeps nothing.
type Discard struct{}

var _ Sink = Discard{}

// Write implements Sink.
func (Discard) Write(*Batch) error { return nil }
