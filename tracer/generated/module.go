// Package generated tells what a compiler has put into a kernel that it generated, from the
// Python module that it generated with it: which variable the kernel is called by, and which
// operators it replaces. Such a module is the job's own file, so nothing in it is taken on
// trust: what is read is bounded, and a name is one only if it could be a variable's.
//
// The package is no part of the public API: it may change with any version.
package generated

import (
	"bytes"
	"strings"
)

const (
	// maxModule is how large a module may be: the code of all its kernels is in it, 1 MB
	// for a large model.
	maxModule = 16 << 20
	// maxKernels and maxCalls are what is kept of one module.
	maxKernels = 1 << 12
	maxCalls   = 1 << 14
	// maxName is longer than any: Inductor cuts them where file systems would.
	maxName = 255
	// maxOperators are the operators of one kernel.
	maxOperators = 128
)

// Kernel is what a line of a generated module calls.
type Kernel struct {
	Name string // "cpp_fused_add_gelu_0"
	// Operators are those that it replaces, where its source names them: "aten::add".
	Operators []string
	asked     bool // whether its name tells
}

// definition ends the beginning of a line that defines a kernel.
var definition = []byte(" = async_compile.cpp_pybinding(")

// original begins the list of operators in the comment above a call.
var original = []byte("Original ATen: [")

// Kernels are the kernels that a module calls, by the line.
func Kernels(source []byte) map[int]Kernel {
	defined, calls := map[string]bool{}, map[int]Kernel{}
	number, comment := 0, []byte(nil)
	for line := range bytes.Lines(source) {
		number++
		indented := len(line) > 0 && line[0] == ' '
		switch text := bytes.TrimSpace(line); {
		case bytes.HasPrefix(text, []byte("#")):
			comment = text
			continue
		case !indented:
			name, _, found := bytes.Cut(line, definition)
			if found && isName(name) && len(defined) < maxKernels {
				defined[string(name)] = true
			}
		default:
			name, _, found := bytes.Cut(text, []byte("("))
			if found && len(name) <= maxName && defined[string(name)] && len(calls) < maxCalls {
				calls[number] = Kernel{Name: string(name), Operators: listed(comment)}
			}
		}
		comment = nil
	}
	return calls
}

// isName reports whether b is a Python variable in ASCII, of a length that is believed.
func isName(b []byte) bool {
	if len(b) == 0 || len(b) > maxName || b[0] >= '0' && b[0] <= '9' {
		return false
	}
	for _, c := range b {
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// listed are the operators that a comment lists: "… Original ATen: [aten.add, aten.gelu]".
func listed(comment []byte) (operators []string) {
	_, rest, found := bytes.Cut(comment, original)
	list, _, closed := bytes.Cut(rest, []byte("]"))
	if !found || !closed {
		return nil
	}
	for part := range bytes.SplitSeq(list, []byte(",")) {
		namespace, name, dotted := bytes.Cut(bytes.TrimSpace(part), []byte("."))
		if !dotted || !isName(namespace) || !isName(name) || len(operators) == maxOperators {
			return nil
		}
		operators = append(operators, string(namespace)+"::"+string(name))
	}
	return operators
}

// Operators splits a kernel's name into the operators that it replaces: Inductor puts
// their names into it, each once and in their order, joined by the character that is in
// them too. known says of which names there is an operator; of several ways to split the
// one with the fewest is taken. nil where there is none.
func Operators(kernel string, known func(name string) bool) []string {
	names, ok := fusedNames(kernel)
	if !ok || len(kernel) > maxName {
		return nil
	}
	at := strings.LastIndexByte(names, '_')
	if at < 0 || !isNumber(names[at+1:]) {
		return nil
	}
	words := strings.Split(names[:at], "_")
	// best[i] is the shortest list of operators of the words up to i, behind the last of
	// which every operator would have to come.
	best := make([][]string, len(words)+1)
	best[0] = []string{}
	for end := 1; end <= len(words); end++ {
		for begin := range end {
			before, name := best[begin], strings.Join(words[begin:end], "_")
			if before == nil || best[end] != nil && len(best[end]) <= len(before)+1 ||
				len(before) > 0 && before[len(before)-1] >= name || !known(name) {
				continue
			}
			best[end] = append(before[:len(before):len(before)], name)
		}
	}
	found := best[len(words)]
	if len(found) == 0 {
		return nil
	}
	for i := range found {
		found[i] = "aten::" + found[i]
	}
	return found
}

// fusedNames is what comes behind cpp_fused_, or behind triton_poi_fused_: Triton's kernels
// have a word for what they are (poi is pointwise, red a reduction, per a persistent one, …).
func fusedNames(kernel string) (string, bool) {
	if names, ok := strings.CutPrefix(kernel, "cpp_fused_"); ok {
		return names, true
	}
	kind, names, ok := strings.Cut(kernel, "_fused_")
	word, triton := strings.CutPrefix(kind, "triton_")
	return names, ok && triton && isWord(word)
}

func isWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == ""
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
