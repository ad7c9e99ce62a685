package explain

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
)

// Frame is one distinct frame of the recording's stacks.
type Frame struct {
	Kind, Function, File, Module string
	Line                         int
	Signs                        Sign
	User                         bool // a Python frame of the user's own code
}

// Stack is a call stack, leaf first.
type Stack struct {
	Frames []*Frame
	Signs  Sign // of all its frames
	user   []int
	op     string
}

var noStack = &Stack{}

// Has reports whether a frame of the stack has a sign.
func (s *Stack) Has(signs Sign) bool { return s.Signs&signs != 0 }

// Users are the frames of the user's code, outermost first.
func (s *Stack) Users() []*Frame {
	frames := make([]*Frame, len(s.user))
	for i, at := range s.user {
		frames[len(s.user)-1-i] = s.Frames[at]
	}
	return frames
}

// Innermost is the innermost frame of the user's code, nil if there is none.
func (s *Stack) Innermost() *Frame {
	if len(s.user) == 0 {
		return nil
	}
	return s.Frames[s.user[0]]
}

// Called is the Python function that the innermost user frame called, nil if it called none.
func (s *Stack) Called() *Frame {
	if len(s.user) == 0 {
		return nil
	}
	for i := s.user[0] - 1; i >= 0; i-- {
		if f := s.Frames[i]; f.Kind == "python" && !wrapper.MatchString(f.Function) {
			return f
		}
	}
	return nil
}

// Native is the native function of a library that the innermost Python frame called, the innermost that the interpreter
// itself called: nil if the stack has none, or has an operator of PyTorch in between.
func (s *Stack) Native() *Frame {
	at := slices.IndexFunc(s.Frames, func(f *Frame) bool { return f.Kind == "python" || f.Kind == "op" })
	if at < 0 || s.Frames[at].Kind == "op" {
		return nil
	}
	for i, f := range s.Frames[:at] {
		if f.Kind == "native" && f.Module != "" && !runtimeModule.MatchString(f.Module) && !interpreterModule.MatchString(f.Module) &&
			s.Frames[i+1].interprets() {
			return f
		}
	}
	return nil
}

func (f *Frame) interprets() bool {
	return f.Kind == "python" || f.Kind == "native" && interpreterModule.MatchString(f.Module)
}

// runtimeModule are the C library and its like, in which a stack says nothing of who called.
var runtimeModule = regexp.MustCompile(`^(libc|libm|libpthread|ld-linux.*|libstdc\+\+|libgcc_s)[-.]|^\[`)

// wrapper are functions around others that say nothing of what is called.
var wrapper = regexp.MustCompile(
	`(^|\.)(_?wrap\w*|inner\w*|decorat\w*|_wrapped_call_impl|_call_impl|maybe_fallback|profile_hook_step|_use_grad\w*|_fn|no_grad|` +
		`inference_mode|<lambda>|<genexpr>|<listcomp>|<dictcomp>|new_func|wrapped_func|func_wrapper)$`)

// Inside are the frames below (called by) the innermost user frame, leaf first.
func (s *Stack) Inside() []*Frame {
	if len(s.user) == 0 {
		return s.Frames
	}
	return s.Frames[:s.user[0]]
}

// below reports whether a frame with a sign is called, directly or not, by the innermost user frame.
func (s *Stack) below(sign Sign) bool {
	for _, f := range s.Inside() {
		if f.Signs&sign != 0 {
			return true
		}
	}
	return false
}

// userBelow is the innermost user frame that a frame with the sign called, nil if there is none: of a loader's worker,
// which was forked from the training thread, frames of the loop lie outside of that frame.
func (s *Stack) userBelow(sign Sign) *Frame {
	for i, f := range s.Frames {
		if f.Signs&sign != 0 {
			if len(s.user) > 0 && s.user[0] < i {
				return s.Frames[s.user[0]]
			}
			return nil
		}
	}
	return nil
}

// userAbove is the innermost user frame outside of the outermost frame with a sign.
func (s *Stack) userAbove(sign Sign) *Frame {
	for i := len(s.Frames) - 1; i >= 0; i-- {
		if s.Frames[i].Signs&sign == 0 {
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

// isModel reports whether the stack is in an operator of the model's forward or backward pass or of its optimizer.
func (s *Stack) isModel() bool { return s.op != "" && s.Has(signModule|signBackward|signOptimizer) }

const frameFields = `concat_ws(chr(31), f.kind, coalesce(f."function", ''), coalesce(f.file, ''), coalesce(f.line, 0), coalesce(f.module, ''))`

// readFrames reads the frames of the stacks that samples have: each distinct frame once, and of each stack which they are.
func (r *Recording) readFrames() error {
	const wanted = `FROM stack WHERE stack_id IN (SELECT stack_id FROM sample UNION SELECT stack_id FROM still_thread)`
	frames := map[string]*Frame{}
	err := r.db.Each(r.ctx, `SELECT hash(`+frameFields+`)::VARCHAR, any_value(`+frameFields+`) FROM (SELECT unnest(frames) AS f `+wanted+
		`) GROUP BY 1`,
		func(v []driver.Value) error {
			if f := parseFrame(text(v[1])); f != nil {
				frames[text(v[0])] = f
			}
			return nil
		})
	if err != nil {
		return fmt.Errorf("reading frames: %w", err)
	}
	return r.db.Each(r.ctx, `SELECT stack_id,
		array_to_string(list_transform(frames, lambda f: hash(`+frameFields+`)), ' ') `+wanted, func(v []driver.Value) error {
		s := r.stacks[integer(v[0])]
		if s == nil || s.Frames != nil {
			return nil
		}
		for _, name := range strings.Fields(text(v[1])) {
			if f := frames[name]; f != nil {
				s.add(f)
			}
		}
		s.settle()
		return nil
	})
}

func parseFrame(fields string) *Frame {
	p := strings.Split(fields, "\x1f")
	if len(p) != 5 {
		return nil
	}
	f := &Frame{Kind: p[0], Function: p[1], File: p[2], Module: p[4]}
	fmt.Sscan(p[3], &f.Line)
	f.User = f.Kind == "python" && f.Line > 0 && usercode.Is(f.File)
	f.Signs = signsOf(f)
	return f
}

// add appends a frame: the caller of those that the stack has.
func (s *Stack) add(f *Frame) {
	if f.User {
		s.user = append(s.user, len(s.Frames))
	}
	if f.Kind == "op" && s.op == "" {
		s.op = f.Function
	}
	s.Frames = append(s.Frames, f)
	s.Signs |= f.Signs
}

// settle adds the signs that take several frames.
func (s *Stack) settle() {
	timed := false
	for _, f := range s.Frames {
		if timed && f.Kind == "native" && interpreterModule.MatchString(f.Module) && !strings.HasPrefix(f.Function, "PyThread_") {
			s.Signs |= signGIL
		}
		timed = f.Kind == "native" && strings.Contains(f.Function, "pthread_cond_timedwait")
		if f.Kind == "python" {
			break
		}
	}
}

// cell are the files that a notebook's kernel compiles its cells as: by a hash of their source.
var cell = regexp.MustCompile(`/ipykernel_\d+/(\d+)\.py$`)

// numberedCell is what IPython calls a cell without a kernel, and kernels before ipykernel 6: by the number of its input.
var numberedCell = regexp.MustCompile(`^<ipython-input-(\d+)-`)

// place is a frame as file:line.
func (f *Frame) place() string {
	if m := numberedCell.FindStringSubmatch(f.File); m != nil {
		return fmt.Sprintf("cell In[%s]:%d", m[1], f.Line)
	}
	if m := cell.FindStringSubmatch(f.File); m != nil {
		return fmt.Sprintf("notebook cell %s:%d", m[1], f.Line)
	}
	return fmt.Sprintf("%s:%d", base(f.File), f.Line)
}

// comprehension are the nameless functions that Python makes of a part of a function.
var comprehension = regexp.MustCompile(`(\.?<(genexpr|listcomp|setcomp|dictcomp)>)+$`)

// name is what a function is called, without the class of a local scope: that of a comprehension is the one it is written in.
func (f *Frame) name() string {
	name := comprehension.ReplaceAllString(strings.ReplaceAll(f.Function, ".<locals>", ""), "")
	if name == "<module>" || name == "" {
		return ""
	}
	return name
}

// at is a user frame in words: "train_step (train.py:12)", or the line alone at the top of a script.
func (f *Frame) at() string {
	if name := f.name(); name != "" {
		return fmt.Sprintf("%s (%s)", name, f.place())
	}
	return f.place()
}
