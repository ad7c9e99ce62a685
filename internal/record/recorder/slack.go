package recorder

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// looseSleep is how late the kernel may wake a thread of ours from a sleep. While anything of
// a Go program runs, its monitor looks around every 20 µs: that took a third of what a quiet
// recording takes of a CPU. Nothing here is due within half a millisecond.
const looseSleep = 500 * time.Microsecond

// sleepLoosely sets that for all threads; those that begin later have it from them. The command
// of run exists by now and keeps its own.
func sleepLoosely() { setSlack(strconv.Itoa(int(looseSleep))) }

func setSlack(nanoseconds string) {
	eachThread(func(tid string) {
		_ = os.WriteFile(filepath.Join("/proc", tid, "timerslack_ns"), []byte(nanoseconds), 0)
	})
}

// answeringNice is the nice value of our threads once the recording has ended: the job goes
// on, and the verdict can wait for it.
const answeringNice = 10

func beNice() {
	eachThread(func(tid string) {
		if n, err := strconv.Atoi(tid); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, n, answeringNice)
		}
	})
}

func eachThread(do func(tid string)) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		do(t.Name())
	}
}
