package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings/evidence"
)

// compilation: a compiler of the framework's is at work, on the thread itself or in threads and programs it waits for.
func compilation(r *Recording) ([]Explanation, error) {
	compiling := map[*Stack]bool{}
	is := func(row *Row) bool {
		known, ok := compiling[row.Stack]
		if !ok {
			known = row.Stack.compiles()
			compiling[row.Stack] = known
		}
		return known
	}
	claims := r.rows(is)
	// Waits while other threads compile, as XLA's pool does.
	elsewhere := 0.0
	for i := range r.Others {
		if r.Others[i].OnCPU && is(&r.Others[i]) {
			elsewhere += r.Others[i].NS
		}
	}
	if r.share(claims) < leastShare/2 {
		return nil, nil
	}
	// torch.compile compiles a backward pass when it first runs: the cause is the call that was compiled.
	called := r.rows(func(row *Row) bool { return is(row) && !row.Stack.Has(signBackward) })
	if r.sum(called) < r.sum(claims)/10 {
		called = claims
	}
	at := r.top(called, func(row *Row) *Frame { return row.Stack.userAboveCompiler() })
	blocks := map[int]float64{}
	for i := range claims {
		blocks[r.Rows[i].Block] += r.Rows[i].NS
	}
	spread, late := 0, 0.0
	for block, ns := range blocks {
		if ns > 0.02*r.Wall()/float64(r.blocks) {
			spread++
		}
		if block >= r.blocks/2 {
			late += ns
		}
	}
	again := spread > 2 && late > r.sum(claims)/10
	e := Explanation{claims: claims, title: "compilation"}
	where := ""
	if at != nil {
		e.Place = at.place()
		where = " at " + at.at()
	}
	if !again {
		e.sentence = fmt.Sprintf("%s of the recording is compilation%s, which happens once.", percent(r.share(claims)), where)
		e.Advice = "Record longer, or after the warm-up; a compilation cache kept between runs shortens the start."
		return []Explanation{e}, nil
	}
	e.title = "recompilation"
	e.sentence = fmt.Sprintf("Recompilation%s takes %s of the time: the compiler works again and again while the job runs.", where,
		percent(r.share(claims)))
	e.Evidence = r.heavyPart(claims)
	jax := slices.ContainsFunc(sortedKeys(claims), func(i int) bool {
		return slices.ContainsFunc(r.Rows[i].Stack.Frames, func(f *Frame) bool {
			return strings.Contains(f.File, "/jax/") || strings.HasPrefix(f.Function, "xla::")
		})
	})
	e.Advice = "Shapes or guards change between calls: pad batches to one size (or a few), or compile with dynamic=True; TORCH_LOGS=recompiles names the guard."
	if jax {
		e.Advice = "A jitted function is compiled for each new shape, static argument or function object: pad to a few shapes, and jit once, outside of the loop."
	}
	return []Explanation{e}, nil
}

// compiles reports whether a stack is in a compiler at work; importing one is not compiling.
func (s *Stack) compiles() bool {
	for _, f := range s.Frames {
		if f.Kind == "python" && f.Function != "<module>" && evidence.Compiles(f.Function, f.File) || f.Kind == "native" &&
			f.Signs&signCompile != 0 {
			return true
		}
	}
	return false
}

// userAboveCompiler is the innermost user frame outside of the compiler's outermost frame.
func (s *Stack) userAboveCompiler() *Frame {
	for i := len(s.Frames) - 1; i >= 0; i-- {
		f := s.Frames[i]
		if !(f.Kind == "python" && f.Function != "<module>" && evidence.Compiles(f.Function, f.File) || f.Kind == "native" &&
			f.Signs&signCompile != 0) {
			continue
		}
		for _, at := range s.user {
			if at > i {
				return s.Frames[at]
			}
		}
		return nil
	}
	return nil
}
