package expense

// What is watched gives way where it costs too much, the dearest first. The probes have
// half of the budget (package budget); what is watched has a part of the other half, for its
// prices are an estimate too.

const (
	// watchShare is the part of the budget that watching waits, reads and writes may take.
	watchShare = 0.4
	// mostMachine is how much of the machine's CPU time it may take, the job's and its
	// neighbours' together: these have no part in the budget.
	mostMachine = 0.01
	// ownShare is the part of the budget that the tracer's own CPU time may take, of each
	// CPU that the job keeps busy.
	ownShare = 1.0
	// obvious is how many times its part what is watched takes that gives way by the first
	// moment alone: that is short, and the job may just have read a file.
	obvious = 4
	// trifle is the part of the budget below which a part does not give way for the sum: who reads
	// would miss more than the job gains.
	trifle = 0.2
)

// Form is what is watched at each event; what is not is sampled, or not seen.
type Form struct{ Waits, IO bool }

// Judge says what is watched from here on, by what it cost in an interval, the first or a later
// one, and the share of the job's time and of the machine's that what gives way took.
func Judge(now Form, i *Interval, first bool, budget float64, cpus int) (next Form, job, machine float64) {
	if budget <= 0 {
		return now, 0, 0
	}
	times := 1.0
	if first {
		times = obvious
	}
	next = now
	shares := i.Shares()
	waits, io := i.Rates.Waits, i.Rates.IO
	if !now.Waits {
		waits, shares.Waits = Pair{}, 0
	}
	if !now.IO {
		io, shares.IO = Pair{}, 0
	}
	all := (waits.Machine + io.Machine) / float64(max(cpus, 1))
	if shares.Waits+shares.IO <= times*watchShare*budget && all <= times*mostMachine {
		return next, 0, 0
	}
	if io.Machine >= waits.Machine {
		next.IO = false
		return next, shares.IO, io.Machine / float64(max(cpus, 1))
	}
	next.Waits = false
	return next, shares.Waits, waits.Machine / float64(max(cpus, 1))
}

// Cheaper is what is watched where all that a recording costs is more than the budget: the dearest part
// gives way that can, and is no trifle. probes are their share of the job's time, which the account
// of package budget makes smaller by itself; ownMay says whether the tracer can still take less of the
// CPUs, and own whether it should.
func Cheaper(now Form, i *Interval, probes, budget float64, ownMay bool) (next Form, own bool) {
	shares := i.Shares()
	if !now.Waits {
		shares.Waits = 0
	}
	if !now.IO {
		shares.IO = 0
	}
	if budget <= 0 || probes+shares.Sum() <= budget {
		return now, false
	}
	waits, io, mine := shares.Waits, shares.IO, shares.Own
	if !ownMay {
		mine = 0
	}
	switch dearest := max(waits, io, mine); {
	case dearest <= trifle*budget:
	case dearest == mine:
		return now, true
	case dearest == io:
		now.IO = false
	default:
		now.Waits = false
	}
	return now, false
}

// OwnTooMuch reports whether the tracer takes more of the CPUs than its part.
func OwnTooMuch(i *Interval, budget float64) bool {
	return budget > 0 && i.OwnCPUs() > ownShare*budget*i.JobCPUs()
}
