package tracer

import (
	"context"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/process"
)

// tracedProcess is one process of the job.
type tracedProcess struct {
	process                          *process.Process
	row                              Process
	seen                             seenFiles
	linker                           *kernel.Links // on the dynamic linker's hook
	rescanAt                         time.Time     // when its maps are to be read next
	rests                            rests         // and not before that, where it takes long
	rescans                          int
	hurry                            bool                              // at rescanAt there will be something new
	waiting                          map[process.FileID]*waitingPlugin // plugins that have not made their function table
	threads                          map[int32]Thread                  // that have had events and not ended
	unhooked                         bool                              // no hook on its dynamic linker: there are too many
	waited, planned                  time.Duration                     // for its plans, and what they took
	saidMaps, saidFiles, saidPlanned bool                              // that it is beyond a limit
	goneAt                           time.Time                         // when it was first seen to be gone, before its exit was told

	code      uint64             // process.CodeDigest when its maps were read, 0 before
	libraries []*process.Library // of then
}

func newTracedProcess(p *process.Process, row Process) *tracedProcess {
	return &tracedProcess{process: p, row: row, seen: seenFiles{paths: map[process.FileID]string{}, refused: map[process.FileID]refusal{}}, waiting: map[process.FileID]*waitingPlugin{}, threads: map[int32]Thread{}}
}

// manage follows the processes until it is time to stop.
func (s *Session) manage(ctx context.Context, life *kernel.LifeReader, decoded <-chan error) error {
	timer := newAlarm()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-decoded:
			return decodeError{err}
		case r, ok := <-life.Records:
			if over, err := s.heard(life, &r, ok); over {
				return err
			}
			if bpf.CallRecordKind(r.Kind) == bpf.CallRecordKindRECORD_LINK_MAP {
				timer.sooner(s.untilTick())
			}
		case p := <-s.planned:
			if err := s.attachLate(p); err != nil {
				return err
			}
		case <-timer.C:
			if err := s.tick(); err != nil {
				return err
			}
			if s.exited() {
				return nil
			}
			timer.set(s.untilTick())
		}
	}
}

// alarm is a timer that what happens meanwhile may bring forward, and not put off: a
// job that loads libraries without end would keep the manager from all that it has to
// do for the others.
type alarm struct {
	*time.Timer
	at time.Time
}

func newAlarm() *alarm { return &alarm{time.NewTimer(0), time.Now()} }

func (a *alarm) set(in time.Duration) {
	a.at = time.Now().Add(in)
	a.Reset(in)
}

// sooner has it ring after so long, if it does not before.
func (a *alarm) sooner(in time.Duration) {
	if time.Now().Add(in).Before(a.at) {
		a.set(in)
	}
}

// heard follows what the kernel told, and reports whether the recording is over:
// every process has ended, or with an error, nothing more will be told.
func (s *Session) heard(life *kernel.LifeReader, r *bpf.CallLifeRecord, ok bool) (over bool, err error) {
	if !ok {
		return true, life.Err
	}
	s.lifeEvent(r)
	return len(life.Records) == 0 && s.exited(), nil
}

// untilTick is how long the manager may sleep: the governor's wait, or less
// where a process is known to have something new, or has just begun.
func (s *Session) untilTick() time.Duration {
	wait := s.governor.Wait()
	if s.open.wanted {
		wait = min(wait, max(time.Millisecond, time.Until(s.open.at)))
	}
	if len(s.leaving.files) > 0 {
		wait = min(wait, releasePace, s.leaving.rest)
	}
	for _, t := range s.processes {
		least := time.Millisecond
		if !t.hurry {
			least = youngTick
		}
		wait = min(wait, max(least, time.Until(t.due())))
	}
	return wait
}

// youngTick is how often processes are looked at that load their libraries.
const youngTick = 250 * time.Millisecond

// tick reads the maps of the processes that are due and lets the governor act.
func (s *Session) tick() error {
	now := time.Now()
	for pid, t := range s.processes {
		if now.Before(t.due()) {
			continue
		}
		if s.overdue(t, now) {
			s.forget(pid)
			continue
		}
		if err := s.rescan(pid); err != nil {
			s.drop(t, err)
		}
	}
	s.endOrphans(now)
	s.lookForOpen(now)
	if err := s.releaseFiles(now); err != nil {
		return err
	}
	if err := s.yieldToForeign(); err != nil {
		return err
	}
	if now.Sub(s.lossesAt) > lossesEvery {
		s.lossesAt = now
		losses, err := s.kernel.AllLost()
		if err != nil {
			return err
		}
		s.stats.lose(losses)
		if err := tellUse(s); err != nil {
			return err
		}
		if lost := losses[bpf.CallLossLOSS_LIFE_RING_FULL]; lost != s.unheard {
			s.unheard = lost
			s.adopt()
		}
	}
	return s.governor.Step()
}

// lossesEvery is how often the counters of losses are read, for whoever watches:
// each is a system call.
const lossesEvery = time.Second
