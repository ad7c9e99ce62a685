// Package beat has the tracer's goroutines wake at the same instants. Each time that the
// process begins to run again after none of it did, Go's scheduler looks some fifty times,
// 20 µs apart, whether it has more to do (sysmon, runtime/proc.go): beside a job that is watched for months that was
// more than what was done meanwhile.
package beat

import "time"

// every is how far the beats are apart.
const every = 100 * time.Millisecond

// began is where they are counted from.
var began = time.Now()

// Of is how long to sleep who would sleep so long: until the last beat within that time.
// Who would sleep for less than a beat sleeps as long.
func Of(wait time.Duration) time.Duration {
	return of(time.Since(began), wait)
}

func of(now, wait time.Duration) time.Duration {
	if wait < every {
		return wait
	}
	if last := (now + wait).Truncate(every) - now; last > 0 {
		return last
	}
	return wait
}
