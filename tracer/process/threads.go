package process

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// Thread is one thread of a process.
type Thread struct {
	TID       int
	Name      string // comm, at most 15 bytes
	Role      string // see Role; "" where the name says nothing
	StartedNS int64  // since the epoch
}

// Threads lists the threads that are alive now, by tid.
func (p *Process) Threads() ([]Thread, error) {
	tids, err := numbers(p.path("task"))
	if err != nil {
		return nil, vanished(p.PID, "listing the threads", err)
	}
	slices.Sort(tids)
	boot := p.fs.bootNS()
	threads := make([]Thread, 0, len(tids))
	for _, tid := range tids {
		b, err := procfile.Read(p.path("task", strconv.Itoa(tid), "stat"), 4096)
		if err != nil {
			continue // it ended meanwhile
		}
		s, err := parseStat(b)
		if err != nil {
			return nil, err
		}
		threads = append(threads, Thread{
			TID: tid, Name: s.comm, Role: Role(s.comm, tid == p.PID),
			StartedNS: boot + int64(s.startTicks)*nsPerTick,
		})
	}
	return threads, nil
}

// ThreadTimes are a thread's times by the kernel's scheduler, since it started.
type ThreadTimes struct {
	CPUNS      int64 // on a CPU
	RunDelayNS int64 // ready to run, without a CPU
}

// ReadThreadTimes reads a thread's schedstat; ok is false when it has ended, or the kernel has no such file
// (CONFIG_SCHED_INFO).
func ReadThreadTimes(pid, tid int32) (t ThreadTimes, ok bool) {
	b, err := procfile.Read(FS{}.pidPath(int(pid), "task/"+strconv.Itoa(int(tid))+"/schedstat"), 128)
	if err != nil {
		return t, false
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return t, false
	}
	cpu, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return t, false
	}
	delay, err := strconv.ParseInt(fields[1], 10, 64)
	return ThreadTimes{CPUNS: cpu, RunDelayNS: delay}, err == nil
}

// TimedThread is a thread and what it has spent.
type TimedThread struct {
	TID       int32
	StartedNS int64 // since the epoch
	Times     ThreadTimes
}

// TimedThreads reads the times of a process's first threads by tid, at most so many.
func TimedThreads(pid, most int) (timed []TimedThread) {
	tids, err := numbers(FS{}.pidPath(pid, "task"))
	if err != nil {
		return nil // it has ended
	}
	slices.Sort(tids)
	for _, tid := range tids[:min(len(tids), max(0, most))] {
		t := TimedThread{TID: int32(tid)}
		var alive, ok bool
		t.StartedNS, alive = ThreadStartedNS(int32(pid), t.TID)
		if t.Times, ok = ReadThreadTimes(int32(pid), t.TID); ok && alive {
			timed = append(timed, t)
		}
	}
	return timed
}

// ThreadName is the name of a thread, "" when it has ended.
func ThreadName(pid, tid int32) string {
	name, _ := procfile.Read(FS{}.pidPath(int(pid), "task/"+strconv.Itoa(int(tid))+"/comm"), 64)
	return strings.TrimSpace(string(name))
}

// threadRoles are the names that PyTorch 2 and CUDA's driver give their
// threads (c10::setThreadName, torch.multiprocessing's _set_thread_name; comm
// cuts them at 15 bytes). A name ending in "*" is a prefix.
var threadRoles = []struct{ name, role string }{
	{"pt_main_thread", "main"},
	{"pt_autograd_*", "autograd"},
	{"pt_data_worker", "dataloader_worker"},
	{"pt_data_pin", "dataloader_pin"},
	{"pt_nccl_watchdg", "nccl_watchdog"},
	{"pt_nccl_heartbt", "nccl_heartbeat"},
	{"pt_nccl_gil_chk", "nccl_gil_check"},
	{"pt_gloo_runloop", "gloo_loop"},
	{"pt_thread_pool", "thread_pool"},
	{"pt_tcpstore*", "tcp_store"},
	{"pt_watchdog*", "watchdog"},
	{"pt_workerserver", "worker_server"},
	{"cuda-EvtHandlr", "cuda_events"},
}

// Role says what a thread is for, from its name: autograd, dataloader_worker,
// dataloader_pin, nccl_watchdog and so on; main for a process's first thread
// whose name says nothing else; "" where it is not known.
func Role(comm string, first bool) string {
	for _, known := range threadRoles {
		if prefix, ok := strings.CutSuffix(known.name, "*"); known.name == comm || ok && strings.HasPrefix(comm, prefix) {
			return known.role
		}
	}
	if first {
		return "main"
	}
	return ""
}
