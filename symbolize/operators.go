package symbolize

import (
	"bytes"
	"strings"
)

// OperatorPrefix begins the symbols of PyTorch's operators: one class each in
// at::_ops, with the static methods call and redispatch.
const OperatorPrefix = "_ZN2at4_ops"

// OperatorName is an operator as its schema names it.
type OperatorName struct {
	Op       string // "aten::add": what torch.profiler counts
	Overload string // "Tensor", "" for the operator's first form
	// Exact: the schema is in the library. Otherwise the class name was split
	// after the longest operator that the library names in a string.
	Exact bool
}

// OperatorClass splits a symbol of at::_ops:
// "_ZN2at4_ops10add_Tensor4callERKN…" is class "add_Tensor", method "call".
func OperatorClass(symbol string) (class, method string, ok bool) {
	rest, ok := strings.CutPrefix(symbol, OperatorPrefix)
	if !ok {
		return "", "", false
	}
	class, rest, ok = sourceName(rest)
	if !ok {
		return "", "", false
	}
	method, rest, ok = sourceName(rest)
	if !ok || !strings.HasPrefix(rest, "E") {
		return "", "", false
	}
	return class, method, true
}

// OperatorNames maps every operator class of a libtorch_cpu ("add_Tensor") to
// its operator ("aten::add", overload "Tensor"). A class name alone does not
// tell where the overload begins ("add__Tensor", "max_pool2d_with_indices_out"),
// but libtorch registers each operator with its schema, a string constant such
// as "add.Tensor(Tensor self, …) -> Tensor", and the class name is the name in
// the schema with "_" for ".".
func OperatorNames(e *ELF) map[string]OperatorName {
	names := map[string]OperatorName{}
	for _, s := range e.ExportedFunctions([]string{OperatorPrefix}) {
		if class, _, ok := OperatorClass(s.Name); ok {
			names[class] = OperatorName{}
		}
	}
	if len(names) == 0 {
		return names
	}
	data := e.readOnlyData()
	left := len(names)
	var tails []string
	for _, d := range data {
		eachSchemaName(d, func(name string, whole bool) {
			class := strings.Replace(name, ".", "_", 1)
			if known, ok := names[class]; ok && known.Op == "" && whole {
				names[class] = splitSchemaName(name)
				left--
			}
			if len(tails) < maxSchemas {
				tails = append(tails, name)
			}
		})
	}
	if left > 0 {
		resolveTails(names, tails)
		resolveByStrings(names, data)
	}
	return names
}

func splitSchemaName(name string) OperatorName {
	op, overload, _ := strings.Cut(name, ".")
	return OperatorName{Op: "aten::" + op, Overload: overload, Exact: true}
}

// eachSchemaName finds the constants "name(arguments) -> results" and yields
// their names: identifiers with at most one dot. A name is whole when the
// constant begins with it, not with a namespace ("prim::permute_copy(…)").
func eachSchemaName(data []byte, yield func(name string, whole bool)) {
	const maxSchema = 16 << 10
	arrow := []byte(") -> ")
	for from := 0; ; {
		i := bytes.Index(data[from:], arrow)
		if i < 0 {
			return
		}
		at := from + i
		// No further back than the constant before, or this would take the square
		// of what is between two NULs.
		lowest := max(from, at-maxSchema)
		start := bytes.LastIndexByte(data[lowest:at], 0)
		end := bytes.IndexByte(data[at:], 0)
		if end < 0 {
			end = len(data) - at
		}
		from = at + end
		if start < 0 {
			continue
		}
		text := data[lowest+start+1 : at]
		open := max(0, bytes.IndexByte(text, '('))
		namespace := bytes.LastIndexByte(text[:open], ':') + 1
		if name := text[namespace:open]; len(name) > 0 && len(name) <= maxSchemaName && isSchemaName(name) {
			yield(string(name), namespace == 0)
		}
	}
}

func isSchemaName(name []byte) bool {
	dots := 0
	for _, c := range name {
		switch {
		case c == '.':
			dots++
		case c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z'):
			return false
		}
	}
	return dots <= 1 && name[0] != '.'
}

// resolveTails serves the schemas that are no string of their own because the
// linker shares tails: "permute_copy(…)" is the end of "prim::permute_copy(…)".
func resolveTails(names map[string]OperatorName, schemaNames []string) {
	for _, name := range schemaNames {
		for i := range len(name) {
			class := strings.Replace(name[i:], ".", "_", 1)
			if known, ok := names[class]; ok && known.Op == "" && name[i] != '.' {
				names[class] = splitSchemaName(name[i:])
			}
		}
	}
}

// resolveByStrings serves a library without schemas: the call methods look
// their operators up by constants such as "aten::add", so the class name is
// split after the longest operator that it begins with.
func resolveByStrings(names map[string]OperatorName, data [][]byte) {
	missing := false
	for _, n := range names {
		missing = missing || n.Op == ""
	}
	if !missing {
		return
	}
	ops := map[string]bool{}
	namespace := []byte("aten::")
	for _, d := range data {
		for {
			at := bytes.Index(d, namespace)
			if at < 0 {
				break
			}
			d = d[at+len(namespace):]
			end := bytes.IndexByte(d[:min(len(d), 256)], 0)
			if end > 0 && len(ops) < maxSchemas && isSchemaName(d[:end]) {
				ops[string(d[:end])] = true
			}
		}
	}
	for class, n := range names {
		if n.Op == "" {
			names[class] = splitAfter(class, ops)
		}
	}
}

func splitAfter(class string, ops map[string]bool) OperatorName {
	if ops[class] || len(class) > maxSchemaName {
		return OperatorName{Op: "aten::" + class}
	}
	for i := len(class) - 1; i > 0; i-- {
		if class[i] == '_' && ops[class[:i]] {
			return OperatorName{Op: "aten::" + class[:i], Overload: class[i+1:]}
		}
	}
	return OperatorName{Op: "aten::" + class}
}
