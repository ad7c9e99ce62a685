package kernel

import "testing"

func TestALoneUserHasWhatTheLimitSays(t *testing.T) {
	for most := 1; most <= 1<<16; most++ {
		if size := roomFor(most); userPart(size) != most || size <= most {
			t.Fatalf("of a table of %d one user may have %d, not %d", size, userPart(size), most)
		}
	}
}
