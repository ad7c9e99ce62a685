package activity

import (
	"io"
	"strings"
	"testing"
)

// An error at the start is returned: the command that is about to run has not begun.
func TestALibraryWithoutTheFunctionIsAnError(t *testing.T) {
	for _, library := range []string{"/proc/self/exe", "/missing"} {
		taker, err := Start(library, io.Discard, 1)
		if err == nil || taker != nil || !strings.Contains(err.Error(), library) {
			t.Errorf("%s: %v, %v", library, taker, err)
		}
	}
}
