package event

// CostParts are what a recording costs its job, by what for: shares of the job's time.
type CostParts struct {
	Probes, InOut float64 // hits, and putting probes in and out
	Waits         float64 // switches of threads, wake-ups and ends of system calls
	IO            float64 // reads and writes, and the longer way of each system call
	Samples       float64
	Starts        float64 // processes that begin and end
	Own           float64 // the tracer's own CPU time, as far as the machine's CPUs were busy
}

// Sum is the whole cost.
func (p *CostParts) Sum() float64 {
	return p.Probes + p.InOut + p.Waits + p.IO + p.Samples + p.Starts + p.Own
}
