package tracer

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// livesScopes are the scopes of testdata/native/lives.c.
func livesScopes() []spec.Group {
	key := []spec.Value{spec.Reg(spec.FieldScopeKey, 0)}
	return []spec.Group{{Name: "native", Tier: spec.Anchor, Functions: []spec.Function{
		{Library: "lives", Symbol: "scope_begin", Exact: true, Layer: "scope", Label: "scope", Action: spec.ScopeBegin, End: spec.ExitSites,
			Values: key},
		{Library: "lives", Symbol: "scope_end", Exact: true, Layer: "scope", Label: "scope_end", Action: spec.ScopeEnd, Values: key},
	}}}
}

// scopesOf counts the scopes of a process that have an end, and those that have none.
func (s *livesSink) scopesOf(j *livesJob) (ended, open int) {
	for _, span := range s.spans {
		switch {
		case span.PID != int32(j.Process.Pid):
		case span.End == EndUnfinished:
			open++
		default:
			ended++
		}
	}
	return ended, open
}

// A process that leaves scopes open has its share of the table and no more; those of
// threads that have ended give their places back, each with a row.
func TestScopesThatNobodyEndsAreAProcesssOwnLoss(t *testing.T) {
	needKernel(t)
	const threads, left = 600, 3000
	attacker := startLives(t, asNobody, "leave", fmt.Sprint(threads), fmt.Sprint(left))
	innocent := startLives(t, nil, "leave", "0", "100")
	sink, _ := recordLives(t, Options{PIDs: []int{attacker.Process.Pid, innocent.Process.Pid}, Level: LevelWindow, Budget: -1,
		catalog: livesScopes()}, func(s *Session, stop func()) {
		attacker.goOn()
		attacker.line(t)
		if n := entries(s.kernel.Map("scopes")); n != MaxScopesOfProcess {
			t.Errorf("%d scopes are open, of a process that may have %d", n, MaxScopesOfProcess)
		}
		innocent.goOn()
		innocent.line(t)
		end := time.Now().Add(3 * orphanWait)
		const stay = MaxScopesOfProcess - threads + 100
		for time.Now().Before(end) && entries(s.kernel.Map("scopes")) > stay {
			time.Sleep(100 * time.Millisecond)
		}
		if n := entries(s.kernel.Map("scopes")); n != stay {
			t.Errorf("%d scopes are open after the threads ended, want %d", n, stay)
		}
		for _, job := range []*livesJob{attacker, innocent} {
			job.goOn()
			job.line(t)
		}
		stop()
	})
	if ended, open := sink.scopesOf(innocent); ended != 10 || open != 100 {
		t.Errorf("the other job has %d scopes that ended, %d that did not; want 10 and 100", ended, open)
	}
	if ended, open := sink.scopesOf(attacker); ended != 10 || open != MaxScopesOfProcess {
		t.Errorf("%d scopes that ended, %d that did not; want 10 and %d", ended, open, MaxScopesOfProcess)
	}
	lost := sink.warned("scope_quota")
	if len(lost) != 1 || lost[0].Count != threads+left-MaxScopesOfProcess {
		t.Errorf("scopes beyond the share: %+v, want %d counted", lost, threads+left-MaxScopesOfProcess)
	}
}

// inANamespace starts a job in a user namespace that root made, as a container's: its users are
// 100,000 and those that follow.
func inANamespace(user int) *syscall.SysProcAttr {
	maps := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100_000, Size: 16}}
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: maps, GidMappings: maps, Setpgid: true,
		Credential: &syscall.Credential{Uid: uint32(user), Gid: 0, NoSetGroups: true},
	}
}

// Processes of one user have three quarters of the table together, also as different users of
// one container; a neighbour's scopes are all there, and the warning says whose took the room.
func TestTheScopesOfManyProcessesAreOneUsersLoss(t *testing.T) {
	needKernel(t)
	const left, container = 1000, 100_000
	var attackers []*livesJob
	options := Options{Level: LevelWindow, Budget: -1, catalog: livesScopes()}
	for i := range 4 {
		attackers = append(attackers, startLives(t, inANamespace(i), "leave", "0", fmt.Sprint(left)))
		options.PIDs = append(options.PIDs, attackers[i].Process.Pid)
	}
	innocent := startLives(t, asNobody, "leave", "0", fmt.Sprint(left))
	options.PIDs = append(options.PIDs, innocent.Process.Pid)
	sink, _ := recordLives(t, options, func(s *Session, stop func()) {
		for _, job := range attackers {
			job.goOn()
			job.line(t)
		}
		if n := entries(s.kernel.Map("scopes")); n != MaxScopesOfUser {
			t.Errorf("%d scopes are open, of a user who may have %d", n, MaxScopesOfUser)
		}
		innocent.goOn()
		innocent.line(t)
		for _, job := range append(attackers, innocent) {
			job.goOn()
			job.line(t)
		}
		stop()
	})
	if ended, open := sink.scopesOf(innocent); ended != 10 || open != left {
		t.Errorf("the neighbour has %d scopes that ended, %d that did not; want 10 and %d", ended, open, left)
	}
	lost := sink.warned("scope_quota")
	if len(lost) != 1 || lost[0].Count < 4*left-MaxScopesOfUser {
		t.Fatalf("scopes beyond the share: %+v, want %d counted", lost, 4*left-MaxScopesOfUser)
	}
	if want := fmt.Sprintf("user %d was refused the most (%d)", container, lost[0].Count); !strings.Contains(lost[0].Detail, want) {
		t.Errorf("the warning says %q, and not %q", lost[0].Detail, want)
	}
}
