package recorder

import (
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// looseSleep is how late the kernel may wake a thread of ours from a sleep. While anything of
// a Go program runs, its monitor looks around every 20 µs: that took a third of what a quiet
// recording takes of a CPU. Nothing here is due within half a millisecond.
const looseSleep = 500 * time.Microsecond

// sleepLoosely sets that for all threads; those that begin later have it from them. The command
// of run exists by now and keeps its own.
func sleepLoosely() { setSlack(strconv.Itoa(int(looseSleep))) }

func setSlack(nanoseconds string) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		_ = os.WriteFile(filepath.Join("/proc", t.Name(), "timerslack_ns"), []byte(nanoseconds), 0)
	}
}
