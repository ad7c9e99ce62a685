package rows

import (
	"fmt"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// A job may call its scopes step 1, step 2, …
func TestNamesThatNeverEndAreKeptUpToANumber(t *testing.T) {
	names, scope := newCallNames(), &event.Call{Layer: "scope", Category: "user", Name: "scope"}
	first := names.Name(1, scope, "step 0")
	for i := range 3 * MaxNames {
		if call := names.Name(1, scope, fmt.Sprintf("step %d", i)); i == 0 && call != first {
			t.Error("the same name is another call")
		}
	}
	if n := names.named.Len(); n > MaxNames {
		t.Errorf("%d names are kept", n)
	}
	if c := names.Recategorize(1, scope, "graph"); c.Category != "graph" || c.Name != scope.Name || scope.Category != "user" {
		t.Errorf("%+v of %+v", c, scope)
	}
}
