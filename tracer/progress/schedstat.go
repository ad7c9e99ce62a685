package progress

import (
	"fmt"
	"os"
	"time"
)

// schedstat reads how long a thread ran and how long it waited for a core.
func schedstat(tid int32) (ran, waited time.Duration, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", tid))
	if err != nil {
		return 0, 0, false
	}
	_, err = fmt.Sscan(string(raw), (*int64)(&ran), (*int64)(&waited))
	return ran, waited, err == nil
}
