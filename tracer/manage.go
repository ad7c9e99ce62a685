package tracer

import (
	"context"
	"fmt"
	"time"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/tracer/beat"
	"github.com/ebpfprof/ebpfprof/tracer/kernel"
	"github.com/ebpfprof/ebpfprof/tracer/reader"
)

// manager does what is to be done while the rings are read: it follows the processes and
// lets the governor act. It is one goroutine, that of Session.Run.
type manager struct {
	*Session
	lossesAt time.Time
	pages    resting
	probesAt time.Time
	unheard  uint64 // records of processes that the kernel had no room for, at the last look
	scopes   scopeSweep
	open     openLook
	io       ioLook
	standing standingLook
	watch    watchLook
}

// manage follows the processes until it is time to stop.
func (s *manager) manage(ctx context.Context, life *kernel.LifeReader, decoded <-chan error) error {
	timer := newAlarm()
	defer timer.Stop()
	defer s.standing.end()
	defer s.watch.end(s.Session)
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
			if kind := bpf.CallRecordKind(r.Kind); kind == bpf.CallRecordKindRECORD_LINK_MAP || kind == bpf.CallRecordKindRECORD_YOUNG {
				timer.sooner(s.untilTick())
			}
		case p := <-s.job.Planned():
			if err := s.job.AttachPlanned(p); err != nil {
				return err
			}
		case r := <-s.job.PlannedLater():
			if err := s.job.AttachLater(r); err != nil {
				return err
			}
		case <-timer.C:
			if err := s.tick(); err != nil {
				return err
			}
			if s.job.Exited() {
				return nil
			}
			timer.set(beat.Of(s.untilTick()))
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
// every process has ended, or with an error, nothing more will be reported.
func (s *manager) heard(life *kernel.LifeReader, r *bpf.CallLifeRecord, ok bool) (over bool, err error) {
	if !ok {
		return true, life.Err
	}
	s.job.Event(r)
	return len(life.Records) == 0 && s.job.Exited(), nil
}

// untilTick is how long the manager may sleep: the governor's wait, or less
// where a process is known to have something new, or has just begun.
func (s *manager) untilTick() time.Duration {
	wait := s.governor.Wait()
	if s.probes.Awaits() {
		wait = min(wait, max(time.Millisecond, time.Until(s.open.at)))
	}
	wait = min(wait, s.probes.Wait())
	if s.sampling.walks != nil {
		wait = min(wait, max(time.Millisecond, time.Until(s.standing.at)))
	}
	if s.sampling.sampler != nil {
		wait = min(wait, s.watch.until())
	}
	return min(wait, s.job.Wait())
}

// tick reads the maps of the processes that are due and lets the governor act.
func (s *manager) tick() error {
	now := time.Now()
	s.job.Tick(now)
	s.scopes.endOrphans(s.Session, now)
	s.open.look(s.Session, now)
	s.io.look(s.Session, now)
	s.standing.look(s.Session, now)
	s.watch.look(s.Session, now)
	if s.watch.waits != nil {
		s.watch.waits.look(now)
	}
	s.pages.rest(now)
	if err := s.probes.Tick(now); err != nil {
		return err
	}
	if now.Sub(s.lossesAt) > lossesEvery {
		s.lossesAt = now
		losses, err := s.kernel.AllLost()
		if err != nil {
			return err
		}
		s.stats.lose(losses)
		s.refused.look(s.Session)
		if err := s.tellUse(); err != nil {
			return err
		}
		s.tellLate()
		if lost := losses[bpf.CallLossLOSS_LIFE_RING_FULL]; lost != s.unheard {
			s.unheard = lost
			s.job.Adopt()
		}
	}
	if now.Sub(s.probesAt) > probesEvery {
		s.probesAt = now
		if err := s.countProbes(); err != nil {
			return err
		}
	}
	return s.governor.Step()
}

// tellLate says which processes are left alone, since whoever reads what is theirs waits.
func (s *Session) tellLate() {
	for _, late := range reader.TakeLate() {
		s.warn(Warning{TSNS: time.Now().UnixNano(), Kind: "incomplete", Source: "read_late", Count: 1, Detail: fmt.Sprintf(
			"pid %d of user %d keeps whoever reads its files or its memory waiting: it is left alone, for longer each time, and has no probes "+
				"and no names meanwhile", late.PID, late.User)})
	}
}

// countProbes adds up what all slots of the probe table have counted. A slot whose file has
// gone keeps its count, also when another file's probe gets it, so that the sum never falls.
func (s *Session) countProbes() error {
	use := ProbeUse{Attached: s.probes.Accounts().Attached()}
	for _, p := range s.probes.All() {
		n, err := s.kernel.Count(p.Index)
		if err != nil {
			return err
		}
		use.Hits += n.Entries + n.Exits + n.Passed
	}
	s.stats.use(use)
	return nil
}

// lossesEvery is how often the counters of losses are read, for whoever watches:
// each is a system call.
const lossesEvery = time.Second

// probesEvery is how often those of all probes are, one after the other: some thousand at most.
const probesEvery = 10 * time.Second
