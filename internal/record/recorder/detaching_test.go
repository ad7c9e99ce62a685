package recorder

import (
	"testing"
	"time"
)

func TestTheSlowEndIsExplained(t *testing.T) {
	const begins = "taking out 90 links of probes one by one (before Linux 6.6 each probe is a link)"
	for _, c := range []struct {
		out  int
		in   time.Duration
		want string
	}{
		{0, time.Second, begins},
		{10, time.Second, begins + ": 100 ms for each, 9s more"},
	} {
		if got := detachLine(90, c.out, c.in); got != c.want {
			t.Errorf("%d out in %s: %q, want %q", c.out, c.in, got, c.want)
		}
	}
}
