// Package beat has the tracer's goroutines wake at the same instants. Each time that the
// process begins to run again after none of it did, Go's scheduler looks some fifty times,
// 20 µs apart, whether it has more to do (sysmon, runtime/proc.go): beside a job that is watched for months that was
// more than what was done meanwhile.
//
// The package is no part of the public API: it may change with any version.
package beat

import "time"

// every is how far the beats are apart; who can't wait so long meets others on half of one.
const (
	every = 200 * time.Millisecond
	half  = every / 2
)

// began is where they are counted from.
var began = time.Now()

// Of is how long to sleep who would sleep so long: until the last beat within that time, or
// half beat where there is no whole one. Who would sleep for less than that sleeps as long.
func Of(wait time.Duration) time.Duration {
	return of(time.Since(began), wait)
}

func of(now, wait time.Duration) time.Duration {
	for _, beat := range []time.Duration{every, half} {
		if wait < beat {
			continue
		}
		if last := (now + wait).Truncate(beat) - now; last > 0 {
			return last
		}
	}
	return wait
}
