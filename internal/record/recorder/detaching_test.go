package recorder

import (
	"testing"
	"time"
)

func TestTheSlowEndIsExplained(t *testing.T) {
	const begins = "taking out 90 probes one by one: this kernel has no uprobe.multi (Linux 6.6)"
	for _, c := range []struct {
		out  int
		in   time.Duration
		want string
	}{
		{0, time.Second, begins},
		{10, time.Second, begins + " and takes 100 ms for each, 9s more"},
	} {
		if got := detachLine(90, c.out, c.in); got != c.want {
			t.Errorf("%d out in %s: %q, want %q", c.out, c.in, got, c.want)
		}
	}
}
