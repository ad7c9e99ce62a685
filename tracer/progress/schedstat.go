package progress

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// mostOpen bounds how many threads' files are kept open.
const mostOpen = 256

// schedstats reads threads' times from their schedstat, nanoseconds
// (Documentation/scheduler/sched-stats.rst). It keeps the files open: a job is looked at for
// months, some times a second, and to open one each time takes five times as long (6.7 and 1.2 µs). What is
// open goes with it. Not for several goroutines.
type schedstats struct {
	files map[int32]*os.File
	text  [96]byte // three numbers of at most 20 digits
}

// waited is how long a thread has waited for a core.
func (s *schedstats) waited(tid int32) (time.Duration, bool) { return s.field(tid, 1) }

// ran is how long a thread has run.
func (s *schedstats) ran(tid int32) (time.Duration, bool) { return s.field(tid, 0) }

func (s *schedstats) field(tid int32, n int) (time.Duration, bool) {
	f := s.files[tid]
	if f == nil {
		var err error
		if f, err = os.Open("/proc/" + strconv.Itoa(int(tid)) + "/schedstat"); err != nil {
			return 0, false
		}
		if s.files == nil || len(s.files) >= mostOpen {
			s.close()
		}
		s.files[tid] = f
	}
	length, _ := f.ReadAt(s.text[:], 0) // to its end
	if length == 0 {                    // the thread has ended; another one may have its number
		f.Close()
		delete(s.files, tid)
		return 0, false
	}
	fields := bytes.Fields(s.text[:length])
	if len(fields) <= n {
		return 0, false
	}
	ns, err := strconv.ParseInt(string(fields[n]), 10, 64)
	return time.Duration(ns), err == nil
}

func (s *schedstats) close() {
	for _, f := range s.files {
		f.Close()
	}
	s.files = map[int32]*os.File{}
}
