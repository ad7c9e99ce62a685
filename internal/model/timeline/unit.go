package timeline

import (
	"context"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/model/steps"
	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
)

// TrainingStep is what a step of a training loop is called.
const TrainingStep = "training step"

// Trains are the processes that train: they make backward passes or step an optimizer.
func Trains(ctx context.Context, db *dataset.DB) (map[int]bool, error) {
	return processesWith(ctx, db,
		`layer = 'autograd' AND category IN ('backward', 'node') OR layer = 'scope' AND name LIKE 'Optimizer.step#%'`)
}

func processesWith(ctx context.Context, db *dataset.DB, rows string) (map[int]bool, error) {
	found := map[int]bool{}
	err := db.Each(ctx, "SELECT DISTINCT pid FROM span WHERE "+rows, func(v []driver.Value) error {
		if pid, ok := v[0].(int32); ok {
			found[int(pid)] = true
		}
		return nil
	})
	return found, err
}

// nameUnits fills in what a step of each thread is, in its user's words, and what the thread's process does.
func nameUnits(ctx context.Context, db *dataset.DB, threads []Thread) error {
	trains, err := Trains(ctx, db)
	if err != nil {
		return fmt.Errorf("naming steps: %w", err)
	}
	works, err := processesWith(ctx, db, "layer IN ('op', 'autograd', 'runtime', 'collective')")
	if err != nil {
		return fmt.Errorf("naming steps: %w", err)
	}
	for i := range threads {
		t := &threads[i]
		t.Works = works[t.PID]
		t.Trains = trains[t.PID] || t.Loop == nil && strings.ContainsAny(sequenceOfMost(t.Steps), "BO")
		if t.Unit, err = unitOf(ctx, db, t); err != nil {
			return fmt.Errorf("naming steps: %w", err)
		}
	}
	return nil
}

// sequenceOfMost are the anchors of the first step of the loop.
func sequenceOfMost(all []Step) string {
	for _, s := range all {
		if s.Kind != steps.Other {
			return s.Anchors
		}
	}
	return ""
}

// unitOf is what one step is.
func unitOf(ctx context.Context, db *dataset.DB, t *Thread) (string, error) {
	if t.Trains {
		return TrainingStep, nil
	}
	if t.Loop == nil {
		switch anchors := sequenceOfMost(t.Steps); {
		case strings.Contains(anchors, "X"):
			return executionOf(ctx, db, t)
		case strings.Contains(anchors, "L"):
			return "evaluation step", nil
		case strings.Contains(anchors, "C"):
			return "round of collectives", nil
		}
		return "step", nil
	}
	around, err := aroundAnchors(ctx, db, t)
	if err != nil {
		return "", err
	}
	return nameOf(t.Loop, around), nil
}

// nameOf is what a step of a loop without training is, by its ranges, by what it calls and by the functions around it.
func nameOf(l *steps.Loop, around []function) string {
	name := l.Name
	said := strings.ToLower(name + " " + strings.Join(functionNames(around), " "))
	switch {
	case strings.Contains(name, "→"):
		return "iteration (" + name + ")"
	case l.Samples:
		return "decoding step"
	case l.Denoises || name == "" && denoises.MatchString(said) || denoises.MatchString(name):
		return "denoising step"
	case name != "" && decodes.MatchString(name):
		return "decoding step"
	case name != "":
		return "call of " + strings.TrimSpace(name)
	case strings.Contains(strings.ToLower(l.Anchor), "graphlaunch"):
		return "launch of a captured graph"
	}
	what := "iteration"
	if serves.MatchString(said) {
		what = "request"
	}
	for _, f := range around {
		if f.file != "" && usercode.Is(f.file) && f.name != "<module>" {
			return fmt.Sprintf("%s in %s (%s)", what, f.name, filepath.Base(f.file))
		}
	}
	return what
}

var (
	denoises = regexp.MustCompile(`(?i)denois|diffus|ddim|ddpm|unet|euler_?step|timestep`)
	serves   = regexp.MustCompile(
		`(^|[/ ])(fastapi|starlette|uvicorn|anyio|flask|werkzeug|gunicorn|hypercorn|tornado|aiohttp|django|gradio|grpc|ray/serve|litserve)/|http/server|socketserver`)
	decodes = regexp.MustCompile(`(?i)\b(decode|decoding|token)|phase`)
)

// function is one around all anchors, the innermost first.
type function struct{ name, file string }

func functionNames(all []function) (names []string) {
	for _, f := range all {
		names = append(names, f.name, f.file)
	}
	return names
}

// aroundAnchors are the Python functions that all calls of the anchor are made in, innermost first.
func aroundAnchors(ctx context.Context, db *dataset.DB, t *Thread) (common []function, err error) {
	first := true
	err = db.Each(ctx, fmt.Sprintf(`SELECT list_transform(list_filter(frames, x -> x.kind = 'python'),
		x -> x."function" || chr(0) || coalesce(x.file, ''))
		FROM stack WHERE stack_id IN (SELECT DISTINCT coalesce(python_stack_id, stack_id) FROM span
			WHERE pid = %d AND tid = %d AND name = '%s' AND layer <> 'device' AND ts_ns >= %d LIMIT 200)`,
		t.PID, t.TID, strings.ReplaceAll(t.Loop.Anchor, "'", "''"), t.Steps[0].Begin),
		func(v []driver.Value) error {
			var all []function
			frames, _ := v[0].([]any)
			for _, f := range frames {
				text, _ := f.(string)
				name, file, _ := strings.Cut(text, "\x00")
				all = append(all, function{name, file})
			}
			if first {
				common, first = all, false
				return nil
			}
			common = shared(common, all)
			return nil
		})
	return common, err
}

// shared are the outermost functions that two stacks have in common.
func shared(a, b []function) []function {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return slices.Clone(a[len(a)-n:])
}

// executionOf is the compiled program that a step executes.
func executionOf(ctx context.Context, db *dataset.DB, t *Thread) (string, error) {
	var name string
	err := db.Each(ctx, fmt.Sprintf(`SELECT name FROM span WHERE pid = %d AND tid = %d AND layer = 'runtime' AND category = 'launch'
		GROUP BY name ORDER BY sum(duration_ns) DESC, name LIMIT 1`, t.PID, t.TID), func(v []driver.Value) error {
		name, _ = v[0].(string)
		return nil
	})
	if name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "jit_"), "jit("), ")"); name == "" {
		return "execution", err
	}
	return "call of " + name, err
}

// Worker is what the thread is called in sentences.
func (t Thread) Worker() string {
	if t.Trains {
		return "training thread"
	}
	return "loop's thread"
}

// Plural of a unit.
func Plural(unit string) string {
	for _, sign := range []string{" of ", " in ", " ("} {
		if before, after, ok := strings.Cut(unit, sign); ok {
			return before + "s" + sign + after
		}
	}
	return unit + "s"
}
