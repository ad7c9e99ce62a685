package torch

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/demangle"
)

// VTablePrefix begins the symbols of vtables. An object's vtable pointer is
// the symbol's address plus VTableAddressPoint.
const (
	VTablePrefix       = "_ZTV"
	VTableAddressPoint = 16
)

// VTableClass names the class that a vtable symbol belongs to in the way
// torch.profiler names autograd nodes: the generated ones by their bare name
// ("AddmmBackward0"), the others with their namespace
// ("torch::autograd::AccumulateGrad"), which is what Node::name() returns for
// them. Not ok for a symbol that is no vtable.
func VTableClass(symbol string) (class string, ok bool) {
	mangled, ok := strings.CutPrefix(symbol, VTablePrefix)
	if !ok || mangled == "" {
		return "", false
	}
	parts, ok := nestedName(mangled)
	if !ok {
		// Templates, anonymous namespaces: the whole demangler.
		name, ok := demangle.Type(mangled)
		if !ok {
			return "", false
		}
		return strings.TrimPrefix(name, "torch::autograd::generated::"), true
	}
	if len(parts) == 4 && parts[0] == "torch" && parts[1] == "autograd" && parts[2] == "generated" {
		return parts[3], true
	}
	return strings.Join(parts, "::"), true
}

// nestedName splits a name of plain identifiers: "N5torch8autograd4NodeE", or
// "3Foo" outside any namespace.
func nestedName(mangled string) (parts []string, ok bool) {
	rest, nested := strings.CutPrefix(mangled, "N")
	for {
		part, after, ok := sourceName(rest)
		if !ok {
			return nil, false
		}
		parts, rest = append(parts, part), after
		switch {
		case !nested:
			return parts, rest == ""
		case rest == "E":
			return parts, true
		}
	}
}

// maxIdentifier is longer than any; it keeps a damaged length from overflowing.
const maxIdentifier = 1 << 14

// sourceName cuts one length-prefixed identifier off a mangled name.
func sourceName(mangled string) (name, rest string, ok bool) {
	n, i := 0, 0
	for ; i < len(mangled) && mangled[i] >= '0' && mangled[i] <= '9' && n < maxIdentifier; i++ {
		n = n*10 + int(mangled[i]-'0')
	}
	if i == 0 || n == 0 || n > len(mangled)-i {
		return "", "", false
	}
	name = mangled[i : i+n]
	if strings.HasPrefix(name, "_GLOBAL__") { // an anonymous namespace: not a name
		return "", "", false
	}
	return name, mangled[i+n:], true
}
