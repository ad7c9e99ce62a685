package explain

import (
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
)

// cost is something known to be slow, by its sign on a stack.
type cost struct {
	sign         Sign
	title, claim string // claim follows "N % of the time is "
	advice       string
}

// costs are by what their libraries' documentation says of them.
var costs = []cost{
	{signTLSSetup, "TLS set up for each request", "setting up TLS for new sessions", "Make one session or client and reuse it: a new one " +
		"loads certificates and connects anew each time."},
	{signRows, "pandas row by row", "walking over a DataFrame's rows or elements in Python (iterrows, apply, single values)",
		"Work on whole columns (vectorised operations, to_numpy), or use itertuples where a loop is needed."},
	{signDeepCopy, "copy.deepcopy", "copy.deepcopy", "Copy less often or only what changes: state_dict tensors by clone, configurations " +
		"by reference."},
	{signDenseGrad, "dense gradients of an embedding", "dense gradients of embeddings, as large as the whole table",
		"Pass sparse=True to the embedding (with SparseAdam or SGD), so that only the rows of the batch have gradients."},
	{signElements, "a Python function for each element", "a Python function called for each element or row of an array (np.vectorize, " +
		"np.apply_along_axis)",
		"Write it with operations on whole arrays: np.vectorize is a loop in Python."},
	{signLists, "tensors made of lists", "making tensors of Python lists, or lists of tensors, element by element",
		"Keep numbers in arrays: torch.from_numpy, np.array made once, or a tensor kept from step to step, instead of tolist() and " +
			"torch.tensor(list)."},
	{signDatabase, "asking a database", "asking a database",
		"Ask for many rows at once, add an index on what is asked for (EXPLAIN shows whether a table is scanned), or read the table " +
			"ahead of time."},
	{signRegex, "regular expressions", "matching regular expressions",
		"Where a repetition stands inside a repetition, as in (a+)+, a text that does not match takes exponential time: write it so that " +
			"each character can match in one way only (or (?>…), a++ of Python 3.11); else match once and keep the result."},
	{signListScan, "searching lists", "searching lists or tuples element by element (in, index, count, remove)",
		"Make a set or a dict of it once: looking a key up there does not take longer when it grows."},
	{signListShift, "moving a list's elements", "moving the elements of lists (pop or insert at the front or in the middle, del)",
		"Use a collections.deque for queues, or change the list at its end only."},
	{signCompress, "compression", "compressing or unpacking data",
		"Keep the data unpacked (np.save and mmap_mode instead of savez_compressed), use a faster format (zstd, LZ4) or a lower level, or do " +
			"it in loader workers ahead of time."},
	{signTokenizer, "tokenising", "splitting text into tokens", "Tokenise ahead of time and cache the result, in batches with a " +
		"fast tokenizer."},
	{signPlot, "drawing figures", "drawing figures", "Draw less often, or in another process."},
	{signLogging, "logging", "logging and progress output", "Log every N steps, and fetch values only then."},
	{signEmptyCache, "emptying the device's cache", "emptying the device allocator's cache", "Do not call empty_cache in the loop: each " +
		"next allocation has to ask the driver again."},
	{signTraceback, "making tracebacks", "making tracebacks", "Find who formats a traceback in the loop: warnings, logging with stack_info, " +
		"anomaly detection."},
	{signImage, "image decoding", "decoding and transforming images", "Decode less: let the decoder scale, or store the images at the size " +
		"that is used."},
	{signModelLoad, "loading a model", "loading models or checkpoints", "Load once, at the start, and keep the model or session."},
	{signImport, "imports", "importing modules", "Import once, at the start."},
	{signSubprocess, "starting processes", "starting child processes", "Start them once and keep them."},
}

// otherRules are garbage collection, known costs of libraries, and the findings that have a headroom.
func otherRules(r *Recording) (found []Explanation, err error) {
	if e, ok := r.garbage(); ok {
		found = append(found, e)
	}
	if e, is, err := r.graphRunsAgain(); err != nil {
		return nil, err
	} else if is {
		found = append(found, e)
	}
	known := r.knownCosts()
	found = append(found, known...)
	for _, e := range r.fromFindings() {
		if !r.named(known, &e) {
			found = append(found, e)
		}
	}
	return found, nil
}

// named reports whether what stacks show explains most of what a finding accuses: copy.deepcopy clones tensors, which is no
// change of their layout.
func (r *Recording) named(known []Explanation, e *Explanation) bool {
	for i := range known {
		if r.shared(known[i].claims, e.claims) > r.sum(e.claims)/2 {
			return true
		}
	}
	return false
}

// knownCosts are what stacks show below a line of the user's code.
func (r *Recording) knownCosts() (found []Explanation) {
	for _, c := range costs {
		claims := r.rows(func(row *Row) bool { return row.Stack.below(c.sign) })
		if r.share(claims) < leastShare/2 {
			continue
		}
		at := r.top(claims, innermost)
		e := Explanation{claims: claims, title: c.title, Advice: c.advice}
		if at != nil {
			e.Place = at.place()
		}
		e.sentence = fmt.Sprintf("%s of the time is %s, under %s.", percent(r.share(claims)), c.claim, placeOr(at))
		found = append(found, e)
	}
	return found
}

// garbage: the interpreter collects garbage, because the job asks for it or because it makes many objects.
func (r *Recording) garbage() (Explanation, bool) {
	claims := r.rows(func(row *Row) bool { return row.GC || row.Stack.Has(signGCExplicit) })
	if r.share(claims) < leastShare/2 {
		return Explanation{}, false
	}
	explicit := r.withSign(claims, signGCExplicit)
	at := r.top(claims, innermost)
	e := Explanation{claims: claims, title: "garbage collection"}
	if at != nil {
		e.Place = at.place()
	}
	if r.sum(explicit) > r.sum(claims)/2 {
		e.sentence = fmt.Sprintf("%s of the time is gc.collect(), called at %s: each call walks all Python objects of the process.",
			percent(r.share(claims)), placeOr(at))
		e.Advice = "Remove the call from the loop: reference counts free tensors without it. If it must stay, gc.freeze() after loading leaves the old objects out."
		return e, true
	}
	e.sentence = fmt.Sprintf("%s of the time the interpreter collects garbage, most often at %s.", percent(r.share(claims)), placeOr(at))
	e.Advice = "Many Python objects are made and kept: gc.freeze() after loading, a higher gc.set_threshold, or arrays instead of objects."
	return e, true
}

// fromFindings makes explanations of findings whose headroom was replayed: their share is headroom ÷ period.
func (r *Recording) fromFindings() (found []Explanation) {
	own := map[string]bool{"hotspot": true, "first_step": true, "cpu_contention": true, "loader_starved": true, "blocked": true,
		"recompilation": true, "gil_contention": true,
		"collective_outlier": true}
	for _, f := range r.in.Findings {
		if own[f.Rule] || f.HeadroomPercent == nil || f.Severity == findings.Info {
			continue
		}
		e := Explanation{Explained: min(1, *f.HeadroomPercent/100), HeadroomMS: f.HeadroomMS, title: f.Accusation(), Advice: f.Advice}
		where := ""
		if f.File != nil && f.Line != nil {
			e.Place = fmt.Sprintf("%s:%d", base(*f.File), *f.Line)
			where = " at " + e.Place
			e.claims = r.rows(func(row *Row) bool {
				at := row.Stack.Innermost()
				return at != nil && at.Line == *f.Line && at.File == *f.File && (f.Name == "" || row.Stack.op == "" || strings.Contains(f.Name,
					row.Stack.op) || hasOp(row.Stack, f.Name))
			})
		}
		accused := f.Accusation()
		e.sentence = fmt.Sprintf("%s%s%s (%s): without that a step would be about %s shorter.", strings.ToUpper(accused[:1]), accused[1:], where,
			f.Name, percent(e.Explained))
		found = append(found, e)
	}
	return found
}

func hasOp(s *Stack, name string) bool {
	for _, f := range s.Frames {
		if f.Kind == "op" && f.Function == name {
			return true
		}
	}
	return false
}
