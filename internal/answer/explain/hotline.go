package explain

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// node is a function of the user's code in the tree of user frames, with the lines it is at.
type node struct {
	ns       float64
	claims   map[int]float64
	children map[string]*node
	lines    map[*Frame]*node // where in the function, by frame
	own      map[*Frame]map[int]float64
	frame    *Frame
	depth    int
	function bool // the node is a whole function, and frame its hottest line
}

func newNode(depth int) *node {
	return &node{claims: map[int]float64{}, children: map[string]*node{}, lines: map[*Frame]*node{}, own: map[*Frame]map[int]float64{},
		depth: depth}
}

// userTree adds up rows by the functions of the user's code, from the outermost one to the innermost.
func (r *Recording) userTree() *node {
	root := newNode(0)
	for i := range r.Rows {
		row := &r.Rows[i]
		at := root
		for depth, f := range row.Stack.Users() {
			key := f.File + "\x00" + f.Function
			child := at.children[key]
			if child == nil {
				child = newNode(depth + 1)
				child.frame = f
				at.children[key] = child
			}
			child.ns += row.NS
			child.claims[i] = 1
			line := child.lines[f]
			if line == nil {
				line = newNode(depth + 1)
				line.frame = f
				child.lines[f] = line
			}
			line.ns += row.NS
			line.claims[i] = 1
			at = child
		}
		if inner := row.Stack.Innermost(); inner != nil {
			if at.own[inner] == nil {
				at.own[inner] = map[int]float64{}
			}
			at.own[inner][i] = 1
		}
	}
	return root
}

// hottestLine is the line of a function with the most time that no other place has taken; the model's own operators count
// half, since they are what the job is for.
func (r *Recording) hottestLine(n *node, taken map[int]float64) (hottest *Frame) {
	most := -1.0
	for _, f := range sortedFrames(n.lines) {
		ns := 0.0
		for i := range n.lines[f].claims {
			if row := &r.Rows[i]; taken[i] > 0 {
				continue
			} else if row.Stack.isModel() {
				ns += row.NS / 2
			} else {
				ns += row.NS
			}
		}
		if ns > most {
			hottest, most = f, ns
		}
	}
	return hottest
}

// hotLine finds the deepest function of the user's code that still holds most of the time, and the line in it. Where the
// line is a runner's, the deepest library function speaks.
func hotLine(r *Recording) (found []Explanation, err error) {
	root := r.userTree()
	for _, top := range r.hottest(root) {
		found = append(found, r.describe(top))
	}
	if len(found) == 0 {
		if e, ok := r.libraryAlone(); ok {
			found = append(found, e)
		}
	}
	return found, nil
}

// hottest descends from the root, and from each child that is left beside the way: up to three places.
func (r *Recording) hottest(root *node) (places []*node) {
	taken := map[int]float64{}
	left := func(n *node) float64 { return n.ns - r.shared(n.claims, taken) }
	for range 3 {
		at := root
		for {
			var next *node
			for _, key := range sortedNodeKeys(at.children) {
				if c := at.children[key]; next == nil || left(c) > left(next) {
					next = c
				}
			}
			if next == nil || at != root && left(next) < left(at)/2 && left(next) < r.mostOwn(at, taken) {
				break
			}
			at = next
		}
		if at == root || left(at) < leastShare/2*r.Wall() {
			break
		}
		// Within the function: its heaviest line, if the function is all of the job or the line holds most of it.
		line := at
		for _, f := range sortedFrames(at.lines) {
			l := at.lines[f]
			if (line == at || left(l) > left(line)) && (at.depth == 1 || at.ns > 0.8*r.Wall() || left(l) > 0.7*left(at)) {
				line = l
			}
		}
		place := newNode(at.depth)
		place.frame = line.frame
		if line == at {
			place.frame, place.function = r.hottestLine(at, taken), true
		}
		for _, i := range sortedKeys(line.claims) {
			if taken[i] == 0 {
				place.claims[i] = 1
				place.ns += r.Rows[i].NS
			}
		}
		if place.ns < leastShare/2*r.Wall() {
			break
		}
		for i := range place.claims {
			taken[i] = 1
		}
		places = append(places, place)
	}
	return places
}

func sortedNodeKeys(m map[string]*node) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func sortedFrames(m map[*Frame]*node) []*Frame {
	keys := make([]*Frame, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, byPlace)
	return keys
}

// mostOwn is the most time that one line of a function holds outside of the user's functions that it calls.
func (r *Recording) mostOwn(n *node, taken map[int]float64) (most float64) {
	for _, claims := range n.own {
		own := claims
		if runs := r.runnerTime(claims); runs > r.sum(claims)/2 {
			// What a trainer does there besides is many things: the largest of them counts.
			if lib := r.deepestLibrary(claims); lib != nil {
				own = r.inFunction(claims, lib)
			}
		}
		most = max(most, r.sum(own)-r.shared(own, taken))
	}
	return most
}

// inFunction are the claims whose stacks are in a function.
func (r *Recording) inFunction(claims map[int]float64, f *Frame) map[int]float64 {
	held := map[int]float64{}
	for i, part := range claims {
		if hasFunction(r.Rows[i].Stack, f) {
			held[i] = part
		}
	}
	return held
}

// describe makes an explanation of a hot place.
func (r *Recording) describe(n *node) Explanation {
	share := n.ns / r.Wall()
	e := Explanation{Place: n.frame.place(), claims: n.claims}
	own, below := map[int]float64{}, map[int]float64{}
	for i, part := range n.claims {
		switch inner := r.Rows[i].Stack.Innermost(); {
		case inner == n.frame:
			own[i] = part
		case inner.Function != n.frame.Function || inner.File != n.frame.File:
			below[i] = part
		}
	}
	what := r.inside(own)
	if r.sum(below) > r.sum(n.claims)/2 {
		what = r.calledFrom(n)
	}
	if lib := r.deepestLibrary(own); lib != nil && r.runnerTime(own) > r.sum(own)/2 {
		held := r.inFunction(own, lib)
		e.claims = held
		e.sentence = fmt.Sprintf("%s of the time is %s (%s), called from %s.", percent(r.share(held)), lib.name(), library(lib), n.frame.at())
		e.title = lib.name()
		e.Advice = "Look at what the job asks of it: how often it is called, and with how much data."
		return e
	}
	e.title = n.frame.at()
	e.sentence = fmt.Sprintf("%s of the time is %s%s.", percent(share), n.frame.at(), what.text)
	if n.function && n.frame.name() != "" {
		line := map[int]float64{}
		for i, part := range n.claims {
			if slices.Contains(r.Rows[i].Stack.Users(), n.frame) {
				line[i] = part
			}
		}
		if r.share(line) < 0.7*share {
			e.sentence = fmt.Sprintf("%s of the time is %s; its hottest line, %s, has %s%s.", percent(share), n.frame.name(), n.frame.place(),
				percent(r.share(line)), what.text)
		}
	}
	e.Advice = what.advice
	return e
}

// calledFrom says what a line's time goes to, if most of it is in functions of the user's own that the line calls.
func (r *Recording) calledFrom(n *node) insides {
	called := heaviest(r.Rows, n.claims, func(row *Row) string {
		users := row.Stack.Users()
		at := slices.IndexFunc(users, func(f *Frame) bool { return f.File == n.frame.File && f.Function == n.frame.Function })
		if at >= 0 && at+1 < len(users) {
			return users[at+1].name()
		}
		return ""
	}, strings.Compare)
	text, advice := "", "Look at what the functions that it calls do each time, and whether they have to."
	if total := r.sum(n.claims); len(called) > 0 && called[0].ns > total/2 {
		text = fmt.Sprintf(", %s of it in %s", percent(called[0].ns/total), called[0].of)
		if r.sum(r.withSign(n.claims, signModule|signBackward|signOptimizer)) > total/2 {
			if ops := heaviest(r.Rows, n.claims, func(row *Row) string { return row.Stack.op }, strings.Compare); len(ops) > 0 {
				text += fmt.Sprintf("; its largest operator is %s", ops[0].of)
			}
			advice = "If it has to run each time, a smaller or fused model, larger batches or torch.compile shorten it; else run it less often."
		}
	}
	return insides{text, advice}
}

// hasFunction reports whether a stack is in a function, at whichever line.
func hasFunction(s *Stack, f *Frame) bool {
	return slices.ContainsFunc(s.Inside(), func(g *Frame) bool { return g.Kind == f.Kind && g.File == f.File && g.Function == f.Function })
}

// runnerTime is the time in servers, trainers and event loops that the innermost line of the user's code called.
func (r *Recording) runnerTime(claims map[int]float64) (ns float64) {
	for i, part := range claims {
		if s := r.Rows[i].Stack; s.below(signEventLoop|signHTTPServer) || isTrainer(s) {
			ns += part * r.Rows[i].NS
		}
	}
	return ns
}

func isTrainer(s *Stack) bool {
	return slices.ContainsFunc(s.Inside(), func(f *Frame) bool {
		return f.Kind == "python" && (strings.Contains(f.File, "/lightning/") || strings.Contains(f.File, "/pytorch_lightning/") ||
			strings.Contains(f.File, "transformers/trainer.py") ||
			strings.Contains(f.File, "/ignite/") || strings.Contains(f.File, "/keras/") || strings.Contains(f.File, "/ipykernel/"))
	})
}

// insides is what happens below a line.
type insides struct{ text, advice string }

// inside says what a place's time goes to: the Python function that the line calls, or the operators.
func (r *Recording) inside(own map[int]float64) insides {
	total := r.sum(own)
	if total == 0 {
		return insides{advice: "Look at what this line calls."}
	}
	called := heaviest(r.Rows, own, func(row *Row) string {
		if f := row.Stack.Called(); f != nil {
			return f.name() + "\x00" + library(f)
		}
		return ""
	}, strings.Compare)
	ops := heaviest(r.Rows, own, func(row *Row) string { return row.Stack.op }, strings.Compare)
	small, model := 0.0, 0.0
	for i, part := range own {
		row := &r.Rows[i]
		if row.Stack.isModel() {
			model += part * row.NS
		}
		if row.Stack.Called() == nil {
			small += part * row.NS
		}
	}
	if len(called) > 0 && called[0].ns > total/2 {
		name, lib, _ := strings.Cut(called[0].of, "\x00")
		text := fmt.Sprintf(", in %s (%s)", name, lib)
		if part := called[0].ns / total; part < mostlyOne {
			text = fmt.Sprintf(", %s of it in %s (%s)", percent(part), name, lib)
		}
		advice := fmt.Sprintf("Call %s less often, or with less data.", name)
		if model > total/2 || r.sum(r.withSign(own, signBackward|signOptimizer)) > total/2 {
			if len(ops) > 0 && ops[0].ns > total/20 {
				text += fmt.Sprintf("; its largest operator is %s", ops[0].of)
			}
			advice = "If it has to run each time, a smaller or fused model, larger batches or torch.compile shorten it; else run it less often."
		}
		return insides{text, advice}
	}
	if native := heaviest(r.Rows, own, nativeCall, strings.Compare); len(native) > 0 && native[0].ns > total/2 {
		return insides{", in " + native[0].of, fmt.Sprintf("Call %s less often, or with less data.", native[0].of)}
	}
	if native := heaviest(r.Rows, own, nativePackage, strings.Compare); len(native) > 0 && native[0].ns > total/2 {
		return insides{", Python that calls functions of " + native[0].of, "Replace a loop over elements by one call on whole arrays, or do it " +
			"less often."}
	}
	if len(ops) > 0 && ops[0].ns > longOperator*total && r.meanCall(ops[0].of) > smallCall {
		return insides{", in " + ops[0].of, operatorAdvice(ops[0].of)}
	}
	if len(ops) > 0 && small > total/2 {
		var names []string
		for _, o := range ops[:min(len(ops), 2)] {
			names = append(names, o.of)
		}
		return insides{fmt.Sprintf(", Python that calls %s", strings.Join(names, " and ")),
			"Replace a loop over elements by one operator on whole tensors, or call it less often."}
	}
	if small > total/2 {
		return insides{", Python itself", "Move the work out of the loop, do it less often, or vectorise it."}
	}
	if several := severalCalls(called, total); several != "" {
		return insides{several, "Look at the largest of these calls: whether it has to run each time, and on how much data."}
	}
	return insides{advice: "Look at what this function does each time, and whether it has to."}
}

// A line is one operator if that holds so much of its time and a call takes longer than what calling costs, ns.
const (
	longOperator = 0.6
	smallCall    = 50e3
)

// meanCall is the mean duration of an operator's calls, ns; 0 if none was recorded.
func (r *Recording) meanCall(operator string) float64 {
	var mean sql.NullFloat64
	if r.db == nil {
		return 0
	}
	if err := r.db.Row(r.ctx, `SELECT sum(duration_ns * weight) / sum(weight) FROM span WHERE pid = ? AND layer = 'op' AND name = ?
		AND duration_ns > 0`,
		[]any{r.Pace.PID, operator}, &mean); err != nil {
		return 0
	}
	return mean.Float64
}

// operatorAdvice is what to do about a line that is one operator.
func operatorAdvice(operator string) string {
	switch operator {
	case "aten::cat", "aten::stack", "aten::concat", "aten::vstack", "aten::hstack":
		return "Concatenating copies all of its parts each time: collect them in a list and concatenate once, or write into a tensor made ahead of time."
	case "aten::to", "aten::_to_copy", "aten::copy_", "aten::clone", "aten::contiguous":
		return "Keep the data in the type, layout and place where it is used, and convert or copy it once."
	}
	return "Call it less often, or on less data."
}

// mostlyOne is from which part of a line's time on a call is all that it does.
const mostlyOne = 0.9

// severalCalls names the two largest calls of a line if they hold most of its time.
func severalCalls(called []weighed[string], total float64) string {
	if len(called) < 2 || called[0].ns+called[1].ns < total/2 {
		return ""
	}
	var parts []string
	for _, c := range called[:2] {
		if c.ns < total/20 {
			continue
		}
		name, lib, _ := strings.Cut(c.of, "\x00")
		parts = append(parts, fmt.Sprintf("%s in %s (%s)", percent(c.ns/total), name, lib))
	}
	return ", of it " + strings.Join(parts, ", ")
}

// library is the package that a frame belongs to: pydantic, torch.optim.
func library(f *Frame) string {
	path := f.File
	for _, dir := range []string{"site-packages/", "dist-packages/"} {
		if i := strings.LastIndex(path, dir); i >= 0 {
			path = path[i+len(dir):]
			parts := strings.Split(strings.TrimSuffix(path, ".py"), "/")
			return strings.Join(parts[:min(len(parts), 1)], ".")
		}
	}
	if at := standardLibrary.FindStringIndex(path); at != nil {
		first, _, _ := strings.Cut(strings.TrimSuffix(path[at[1]:], ".py"), "/")
		return first
	}
	return strings.TrimSuffix(base(path), ".py")
}

// standardLibrary is where CPython's own modules lie.
var standardLibrary = regexp.MustCompile(`/lib(64)?/python3[.0-9]*/`)

// deepestLibrary descends the Python functions below a line as long as one child holds most of the time.
func (r *Recording) deepestLibrary(own map[int]float64) *Frame {
	type level struct {
		f  *Frame
		ns float64
	}
	at := own
	var deepest *Frame
	for depth := 0; depth < 200; depth++ {
		sums := map[string]*level{}
		keys := map[int]string{}
		for _, i := range sortedKeys(at) {
			inside := pythonOutermostFirst(r.Rows[i].Stack)
			if depth >= len(inside) {
				continue
			}
			f := inside[depth]
			key := f.File + "\x00" + f.Function
			if sums[key] == nil {
				sums[key] = &level{f: f}
			}
			sums[key].ns += at[i] * r.Rows[i].NS
			keys[i] = key
		}
		best, bestKey := (*level)(nil), ""
		for key, l := range sums {
			if best == nil || l.ns > best.ns || l.ns == best.ns && key < bestKey {
				best, bestKey = l, key
			}
		}
		if best == nil || best.ns < r.sum(at)/2 && best.ns < leastShare*r.Wall()*2 || best.ns < leastShare*r.Wall() {
			break
		}
		deepest = best.f
		next := map[int]float64{}
		for i, key := range keys {
			if key == bestKey {
				next[i] = at[i]
			}
		}
		at = next
	}
	return deepest
}

func pythonOutermostFirst(s *Stack) (frames []*Frame) {
	inside := s.Inside()
	for i := len(inside) - 1; i >= 0; i-- {
		if inside[i].Kind == "python" {
			frames = append(frames, inside[i])
		}
	}
	return frames
}

// libraryAlone explains a thread that shows no line of the user's code.
func (r *Recording) libraryAlone() (Explanation, bool) {
	all := r.rows(func(row *Row) bool { return row.OnCPU })
	lib := r.deepestLibrary(all)
	if lib == nil {
		return Explanation{}, false
	}
	held := r.rows(func(row *Row) bool { return hasFunction(row.Stack, lib) })
	return Explanation{Place: lib.place(), claims: held, title: lib.name(),
		sentence: fmt.Sprintf("%s of the time is %s (%s); no line of the job's own code is on these stacks.", percent(r.share(held)), lib.name(),
			library(lib))}, true
}

// kernel is the native function with the most time of its own, for threads without Python frames.
func kernel(r *Recording) ([]Explanation, error) {
	python := r.rows(func(row *Row) bool {
		return slices.ContainsFunc(row.Stack.Frames, func(f *Frame) bool { return f.Kind == "python" })
	})
	if r.share(python) > leastShare {
		return nil, nil
	}
	type name struct{ function, module string }
	leaves := heaviest(r.Rows, nil, func(row *Row) name {
		if row.OnCPU {
			for _, f := range row.Stack.Frames {
				if f.Kind == "native" && f.Function != "" && !strings.Contains(f.Function, "+0x") { // an address says nothing: its caller's name does
					return name{f.Function, f.Module}
				}
			}
		}
		return name{}
	}, func(a, b name) int { return strings.Compare(a.function+a.module, b.function+b.module) })
	if len(leaves) == 0 || leaves[0].ns < leastShare*r.Wall() {
		return nil, nil
	}
	top := leaves[0].of
	claims := r.rows(func(row *Row) bool {
		return row.OnCPU && slices.ContainsFunc(row.Stack.Frames, func(f *Frame) bool {
			return f.Function == top.function &&
				f.Module == top.module
		})
	})
	return []Explanation{{claims: claims, title: top.function,
		sentence: fmt.Sprintf("%s of the time is the native function %s of %s.", percent(r.share(claims)), top.function, top.module)}}, nil
}
