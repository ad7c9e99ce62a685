package hang

import (
	"fmt"
	"slices"
	"strings"
)

// standing is where the threads of a process stood.
type standing struct {
	what    string // waits, missing
	who     string
	threads []Thread
}

func stood(ranks []Rank, what string) (all []standing) {
	for _, r := range ranks {
		if len(r.Threads) > 0 {
			all = append(all, standing{what, fmt.Sprintf("rank %d", r.Rank), r.Threads})
		}
	}
	return all
}

// textFrames of a stack are written for people.
const textFrames = 24

// writeStacks writes where main threads stood, and others that run Python, each stack once.
func writeStacks(b *strings.Builder, of ...[]standing) {
	type stack struct {
		head   string
		who    []string
		thread *Thread
	}
	var all []*stack
	byText := map[string]*stack{}
	for _, s := range slices.Concat(of...) {
		for i := range s.threads {
			t := &s.threads[i]
			if !t.Main && !t.RunsPython() || len(t.Frames) == 0 {
				continue
			}
			key := s.what + "\x00" + t.Syscall + "\x00" + fmt.Sprint(t.Main, t.Frames)
			known := byText[key]
			if known == nil {
				known = &stack{head: s.what, thread: t}
				byText[key], all = known, append(all, known)
			}
			known.who = append(known.who, s.who)
		}
	}
	for _, s := range all {
		fmt.Fprintf(b, "  stack of what %s: %s, %s\n", s.head, strings.Join(slices.Compact(s.who), ", "), s.thread.state())
		for i, f := range s.thread.Frames {
			if i == textFrames {
				fmt.Fprintf(b, "    … %d more\n", len(s.thread.Frames)-i)
				break
			}
			fmt.Fprintf(b, "    %s\n", f.text())
		}
	}
}

func (t *Thread) state() string {
	text := fmt.Sprintf("thread %d", t.TIDs[0])
	if t.Main {
		text = "main thread"
	}
	if t.Syscall != "" {
		text += " in " + t.Syscall
	}
	if t.Still != nil {
		text += fmt.Sprintf(", still for %.1f s", *t.Still)
	}
	if !t.Whole {
		text += ", not down to the thread's start"
	}
	return text
}

func (f *Frame) text() string {
	switch {
	case f.Kind == "python":
		return fmt.Sprintf("py %s  %s:%d", f.Function, f.File, f.Line)
	case f.Kind == "op":
		return "op " + f.Function
	case f.Function == "":
		return "c  [" + f.Module + "]"
	}
	return fmt.Sprintf("c  %s  [%s]", f.Function, f.Module)
}
