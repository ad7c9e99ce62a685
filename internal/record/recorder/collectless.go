package recorder

import (
	"runtime/debug"
	"sync"
)

// startingGC is the garbage collector's GOGC until all is attached: reading types and programs
// makes some tens of megabytes, of which little is kept, and each collection looks at all
// that is kept, on the cores that the verifier wants.
const startingGC = 400

// collectLess has the garbage collector run less often until what it returns is called.
func collectLess() (asUsual func()) {
	usual := debug.SetGCPercent(startingGC)
	if usual < 0 || usual > startingGC { // GOGC says so
		debug.SetGCPercent(usual)
	}
	return sync.OnceFunc(func() { debug.SetGCPercent(usual) })
}
