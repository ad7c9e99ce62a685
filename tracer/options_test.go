package tracer

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

func TestOptionsMeanWhatTheySay(t *testing.T) {
	for name, c := range map[string]struct {
		given  Options
		level  Level
		budget float64
		stacks bool
	}{
		"nothing said":             {Options{}, LevelWindow, 0.05, false},
		"anchor":                   {Options{Level: LevelAnchor}, LevelAnchor, 0.01, false},
		"a budget of one's own":    {Options{Level: LevelAnchor, Budget: 0.2}, LevelAnchor, 0.2, false},
		"everything":               {Options{Level: LevelAnchor, Budget: Unlimited}, LevelAnchor, Unlimited, false},
		"deep":                     {Options{Level: LevelDeep}, LevelDeep, Unlimited, true},
		"deep within a budget":     {Options{Level: LevelDeep, Budget: 0.05}, LevelDeep, 0.05, true},
		"samples":                  {Options{Level: LevelSamples, Frequency: 99}, LevelSamples, Unlimited, true},
		"a window without samples": {Options{Level: LevelWindow}, LevelWindow, 0.05, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.given
			if err := o.resolve(); err != nil {
				t.Fatal(err)
			}
			if o.Level != c.level || o.Budget != c.budget || o.takesStacks() != c.stacks {
				t.Errorf("level %s, budget %v, stacks %v; want %s, %v, %v", o.Level, o.Budget, o.takesStacks(), c.level, c.budget, c.stacks)
			}
		})
	}
}

func TestOptionsThatMeanNothingAreRefused(t *testing.T) {
	if _, err := Open(t.Context(), Options{Level: "windows"}, &recordingSink{}); !errors.Is(err, ErrUnknownLevel) {
		t.Errorf("an unknown level: %v", err)
	}
	for _, budget := range []float64{1.5, math.NaN(), math.Inf(1)} {
		if _, err := Open(t.Context(), Options{Budget: budget}, &recordingSink{}); err == nil {
			t.Errorf("a budget of %v is taken", budget)
		}
	}
}

// A stack for every operator is what the level is for, whether or not samples are
// asked for as well.
func TestDeepWithoutSamplesHasTheStackOfEveryOperator(t *testing.T) {
	groups := nativeGroup("libcallee-plain", spec.ExitSites, callees)
	for i := range groups[0].Functions {
		groups[0].Functions[i].Layer = "op"
	}
	_, sink, _ := traceNative(t, "calls-plain", Options{Level: LevelDeep, catalog: groups})
	without := 0
	for _, s := range sink.spans {
		if s.Detail == nil || s.Detail.StackID == nil {
			without++
		}
	}
	if len(sink.spans) == 0 || without > len(sink.spans)/10 {
		t.Errorf("%d of %d operators have no stack", without, len(sink.spans))
	}
	if len(sink.samples) > 0 {
		t.Errorf("%d samples that were not asked for", len(sink.samples))
	}
}

// A context that is done opens nothing, and says so.
func TestNothingIsOpenedForAContextThatIsDone(t *testing.T) {
	needKernel(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Options{PIDs: []int{os.Getpid()}}, &recordingSink{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
