package torch

import (
	"bytes"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// maxSchemas bounds the operators that a library may declare, and maxSchemaName
// the length of a name: PyTorch has 3,000, of 60 characters at most.
const (
	maxSchemas    = 1 << 17
	maxSchemaName = 256
)

// OperatorPrefix begins the symbols of PyTorch's operators: one class each in
// at::_ops, with the static methods call and redispatch.
const OperatorPrefix = "_ZN2at4_ops"

// OperatorName is an operator as its schema names it.
type OperatorName struct {
	Op       string // "aten::add": what torch.profiler counts
	Overload string // "Tensor", "" for the operator's first form
	// Returns is what the schema says behind its arrow: "Tensor", "Tensor(a!)",
	// "(Tensor, Tensor)". "" where there is no schema.
	Returns string
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
func OperatorNames(e *elf.File) map[string]OperatorName {
	names := map[string]OperatorName{}
	for _, s := range e.ExportedFunctions([]string{OperatorPrefix}) {
		if class, _, ok := OperatorClass(s.Name); ok {
			names[class] = OperatorName{}
		}
	}
	if len(names) == 0 {
		return names
	}
	data := e.ReadOnlyData()
	left := len(names)
	var tails []schema
	for _, d := range data {
		eachSchema(d, func(s schema) {
			class := strings.Replace(s.name, ".", "_", 1)
			if known, ok := names[class]; ok && known.Op == "" && s.whole {
				names[class] = s.split(s.name)
				left--
			}
			if len(tails) < maxSchemas {
				tails = append(tails, s)
			}
		})
	}
	if left > 0 {
		resolveTails(names, tails)
		resolveByStrings(names, data)
	}
	return names
}

// schema is a constant "name(arguments) -> results". Its name has at most one dot.
// It is whole when the constant begins with it, not with a namespace
// ("prim::permute_copy(…)").
type schema struct {
	name, returns string
	whole         bool
}

// split makes an operator of the schema under a name that ends its own.
func (s *schema) split(name string) OperatorName {
	op, overload, _ := strings.Cut(name, ".")
	return OperatorName{Op: "aten::" + op, Overload: overload, Returns: s.returns, Exact: true}
}

func eachSchema(data []byte, yield func(schema)) {
	const maxSchema, maxReturns = 16 << 10, 256
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
			returns := data[at+len(arrow) : at+min(end, len(arrow)+maxReturns)]
			yield(schema{string(name), string(returns), namespace == 0})
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
func resolveTails(names map[string]OperatorName, schemas []schema) {
	for _, s := range schemas {
		for i := range len(s.name) {
			class := strings.Replace(s.name[i:], ".", "_", 1)
			if known, ok := names[class]; ok && known.Op == "" && s.name[i] != '.' {
				names[class] = s.split(s.name[i:])
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
