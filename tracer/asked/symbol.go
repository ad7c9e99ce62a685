// Package asked reads what a user wants probed beside the catalog: functions by their symbol and
// USDT probes, with the names and types of their arguments. It knows no file: package plan looks
// for what was asked.
//
// The package is no part of the public API: it may change with any version.
package asked

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// GroupName is the group of what a user asks for.
const GroupName = "user"

// most functions and probes may be asked for in one recording.
const most = 256

// Group reads the values of --probe-symbol and --usdt, nil if there are none. The errors name the
// flag and say what to write.
func Group(symbols, notes []string) (*spec.Group, error) {
	symbols, notes = whole(symbols), whole(notes)
	if len(symbols)+len(notes) == 0 {
		return nil, nil
	}
	if len(symbols)+len(notes) > most {
		return nil, fmt.Errorf("--probe-symbol and --usdt: give at most %d", most)
	}
	group := &spec.Group{Name: GroupName, Help: "what --probe-symbol and --usdt ask for", Tier: spec.Detail, Launches: true, Asked: true}
	for _, text := range symbols {
		functions, err := Symbol(text)
		if err != nil {
			return nil, fmt.Errorf("--probe-symbol %s: %w", text, err)
		}
		group.Functions = append(group.Functions, functions...)
	}
	for _, text := range notes {
		function, err := Note(text)
		if err != nil {
			return nil, fmt.Errorf("--usdt %s: %w", text, err)
		}
		group.Functions = append(group.Functions, function)
	}
	return group, nil
}

// whole puts values of a flag together that were parted at the commas between their parentheses, as lists are.
func whole(parts []string) (values []string) {
	open := 0
	for _, part := range parts {
		if open > 0 {
			values[len(values)-1] += "," + part
		} else {
			values = append(values, part)
		}
		open += strings.Count(part, "(") - strings.Count(part, ")")
	}
	return values
}

// Symbol reads LIB:SYMBOL[(NAME:TYPE,…)][->TYPE]. The functions are the ways in which a symbol table
// may have the name.
func Symbol(text string) ([]spec.Function, error) {
	asked := &spec.Asked{Text: text}
	head, arguments, err := cut(text)
	if err != nil {
		return nil, err
	}
	head, result, returns := strings.Cut(head, "->")
	if returns {
		if asked.Returned, err = returned(result); err != nil {
			return nil, err
		}
	}
	file, symbol, ok := strings.Cut(head, ":")
	if asked.File, asked.Symbol = file, symbol; !ok || file == "" || symbol == "" || strings.ContainsAny(head, "/ \t") ||
		strings.HasPrefix(symbol, ":") {
		return nil, fmt.Errorf("write LIB:SYMBOL, such as libfoo.so:foo_step(n:int)->int, with the base name of the library or program")
	}
	f := spec.Function{Layer: spec.LayerUser, Category: "function", Label: symbol, Action: spec.Span, End: spec.ExitSites, ExpensiveEnd: true,
		Asked: asked}
	if f.Values, err = values(asked, arguments); err != nil {
		return nil, err
	}
	var functions []spec.Function
	for _, name := range spellings(symbol) {
		f.Symbol, f.Exact = name.text, name.exact
		functions = append(functions, f)
	}
	return functions, nil
}

// cut takes the parenthesis with the arguments out of a text.
func cut(text string) (head string, arguments []string, err error) {
	open := strings.IndexByte(text, '(')
	if open < 0 {
		return text, nil, nil
	}
	end := strings.IndexByte(text[open:], ')')
	if end < 0 {
		return "", nil, fmt.Errorf("the parenthesis of the arguments is not closed")
	}
	inside, rest := text[open+1:open+end], text[open+end+1:]
	if rest != "" && !strings.HasPrefix(rest, "->") {
		return "", nil, fmt.Errorf("%q is behind the arguments: only ->TYPE may be there", rest)
	}
	if strings.TrimSpace(inside) != "" {
		arguments = strings.Split(inside, ",")
	}
	return text[:open] + rest, arguments, nil
}

// spelling is how a symbol table may have a name.
type spelling struct {
	text  string
	exact bool // the whole symbol, not its beginning
}

// spellings are the symbol as it is, and what C++ makes of it (the Itanium ABI): a::b is _ZN1a1bE and what its parameters
// are, of a const method _ZNK1a1bE, of a template _ZN1a1bI and what its arguments are.
func spellings(symbol string) []spelling {
	if strings.HasPrefix(symbol, "_Z") {
		return []spelling{{symbol, true}}
	}
	parts := strings.Split(symbol, "::")
	if len(parts) == 1 {
		return []spelling{{symbol, true}, {"_Z" + strconv.Itoa(len(symbol)) + symbol, false}}
	}
	nested := ""
	for _, part := range parts {
		nested += strconv.Itoa(len(part)) + part
	}
	return []spelling{{"_ZN" + nested + "E", false}, {"_ZNK" + nested + "E", false}, {"_ZN" + nested + "I", false}, {"_ZNK" + nested + "I",
		false}}
}
