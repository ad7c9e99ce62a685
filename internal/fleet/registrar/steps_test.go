package registrar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"
)

var errKilled = errors.New("killed")

// stepping is a store in which something happens before each change.
type stepping struct {
	Store
	before func() error
}

func (s *stepping) Put(ctx context.Context, key string, content []byte) error {
	if err := s.before(); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, content)
}

func (s *stepping) Create(ctx context.Context, key string, content []byte) error {
	if err := s.before(); err != nil {
		return err
	}
	return s.Store.Create(ctx, key, content)
}

func (s *stepping) Remove(ctx context.Context, key string) error {
	if err := s.before(); err != nil {
		return err
	}
	return s.Store.Remove(ctx, key)
}

// few are options for few files.
func few(after time.Duration) Options {
	o := options(after)
	o.Least = 2
	return o
}

// merged is a store in which two uploads were merged and two have come since.
func merged(t *testing.T, at place) {
	t.Helper()
	for minute := range 4 {
		send(t, at.s, "j", "a", minute)
		if minute == 1 {
			onePass(t, at.s, few(0))
		}
	}
}

// settled goes on as the next registrar would, and sees that all is there and nothing else.
func settled(t *testing.T, when string, at place, want map[string]int) {
	t.Helper()
	onePass(t, at.s, few(20*time.Hour))
	sameRows(t, when+", then a pass", at.rows(t), want)
	onePass(t, at.s, few(22*time.Hour))
	sameRows(t, when+", then all removed", at.rows(t), want)
	if got := icebergRows(t, when, at); !maps.Equal(got, ofTables(want)) {
		t.Errorf("%s: tables of Iceberg have %v rows, want %v", when, got, ofTables(want))
	}
	if names := parquets(t, at.s); len(names) != 3 {
		t.Errorf("%s: %q is left", when, names)
	}
}

// With -short only some of the steps of the next two are tried.

// TestARegistrarThatIsKilledAtAnyStepHarmsNothing: a reader has each row once, then and
// after the next pass. The second pass of the store merges, removes, and removes manifests.
func TestARegistrarThatIsKilledAtAnyStepHarmsNothing(t *testing.T) {
	for name, where := range places(t) {
		t.Run(name, func(t *testing.T) {
			for step := 0; ; step++ {
				if testing.Short() && step%map[string]int{"directory": 4, "bucket": 16}[name] != 0 {
					continue
				}
				at := where(t)
				merged(t, at)
				want := at.rows(t)
				left := step
				killed := &stepping{at.s, func() error {
					if left == 0 {
						return errKilled
					}
					left--
					return nil
				}}
				_, err := Pass(t.Context(), killed, few(2*time.Hour))
				when := fmt.Sprintf("killed before step %d", step)
				sameRows(t, when, at.rows(t), want)
				for table, n := range icebergRows(t, when, at) { // with what came since, or without
					if all := ofTables(want)[table]; n != all && n != all/2 {
						t.Errorf("%s: the table %s of Iceberg has %d of %d rows", when, table, n, all)
					}
				}
				if err == nil {
					if step < 10 {
						t.Errorf("a pass had only %d steps", step)
					}
					return
				}
				if !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				settled(t, when, at, want)
			}
		})
	}
}

// TestTwoRegistrarsAtOnceHarmNothing: one stops before each of its steps in turn until
// another has made a pass, or two of them.
func TestTwoRegistrarsAtOnceHarmNothing(t *testing.T) {
	for name, where := range places(t) {
		t.Run(name, func(t *testing.T) {
			overtaken := 0
			for step := 0; ; step++ {
				if testing.Short() && step%map[string]int{"directory": 6, "bucket": 23}[name] != 0 {
					continue
				}
				at := where(t)
				merged(t, at)
				var want map[string]int
				left, met := step, false
				when := fmt.Sprintf("another pass before step %d", step)
				slow := &stepping{at.s, func() error {
					if left == 0 {
						met = true
						for later := range 3 { // of different files each time, and with all removed
							for minute := range 2 {
								send(t, at.s, "j", "d", 100*later+minute)
							}
							onePass(t, at.s, few(time.Duration(2+2*later)*time.Hour))
						}
						want = at.rows(t)
					}
					left--
					return nil
				}}
				r, err := Pass(t.Context(), slow, few(2*time.Hour))
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				if !met {
					break
				}
				overtaken += r.OtherRuns
				sameRows(t, when, at.rows(t), want)
				settled(t, when, at, want)
			}
			if overtaken < 3 && !testing.Short() {
				t.Errorf("only %d times was a registrar overtaken", overtaken)
			}
		})
	}
}
