package asked

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// types are those that an argument may have, by their names.
var types = map[string]spec.Argument{
	"i8": {Bits: 8}, "i16": {Bits: 16}, "i32": {Bits: 32}, "i64": {Bits: 64},
	"char": {Bits: 8}, "short": {Bits: 16}, "int": {Bits: 32}, "long": {Bits: 64}, "ssize_t": {Bits: 64},
	"u8": unsigned(8), "u16": unsigned(16), "u32": unsigned(32), "u64": unsigned(64),
	"uint": unsigned(32), "ulong": unsigned(64), "size_t": unsigned(64),
	"bool": {Kind: spec.Boolean, Bits: 8}, "ptr": {Kind: spec.Pointer, Bits: 64},
	"str": {Kind: spec.String, Bits: 64}, "char*": {Kind: spec.String, Bits: 64},
}

func unsigned(bits uint8) spec.Argument { return spec.Argument{Kind: spec.Unsigned, Bits: bits} }

// TypeNames lists the types for a flag's help.
const TypeNames = "i8 to i64, u8 to u64, int, uint, long, size_t, bool, ptr, str, and *TYPE of what a pointer points to"

// typed finds a type; pointed is one of what a pointer points to.
func typed(name string) (argument spec.Argument, pointed bool, err error) {
	name = strings.ReplaceAll(name, " ", "")
	rest, pointed := strings.CutPrefix(name, "*")
	argument, ok := types[rest]
	switch {
	case rest == "float" || rest == "double":
		return argument, false, fmt.Errorf("a floating-point argument is in a register that probes cannot read: " +
			"leave it out, the places of the others are counted without it")
	case !ok || pointed && argument.Kind == spec.String:
		return argument, false, fmt.Errorf("%q is no type: choose from %s", name, TypeNames)
	}
	return argument, pointed, nil
}

// skipped is an argument that is not read.
const skipped = "_"

// named reads NAME:TYPE; names and types are those of all before it.
func named(text string, before []spec.Argument) (argument spec.Argument, pointed bool, err error) {
	name, kind, ok := strings.Cut(strings.TrimSpace(text), ":")
	switch {
	case !ok || name == "" || name == resultName:
		return argument, false, fmt.Errorf("argument %q: write NAME:TYPE, such as n:int, or _ to leave it out", text)
	case slices.ContainsFunc(before, func(a spec.Argument) bool { return a.Name == name }):
		return argument, false, fmt.Errorf("two arguments are called %s", name)
	}
	argument, pointed, err = typed(kind)
	argument.Name = name
	return argument, pointed, err
}

// resultName is what a row calls the returned value.
const resultName = "return"

func returned(kind string) (*spec.Argument, error) {
	argument, pointed, err := typed(kind)
	if err == nil && (pointed || argument.Kind == spec.String) {
		err = fmt.Errorf("what a returned pointer points to is not read: write ->ptr")
	}
	argument.Name, argument.Value = resultName, spec.NoValue
	return &argument, err
}

// values are what is captured for the arguments of a function, which are in the order of its parameters.
func values(asked *spec.Asked, texts []string) (captured []spec.Value, err error) {
	for n, text := range texts {
		if strings.TrimSpace(text) == skipped {
			continue
		}
		argument, pointed, err := named(text, asked.Arguments)
		if err != nil {
			return nil, err
		}
		if len(captured) >= spec.MostValues || n >= spec.RegisterArguments+stackArguments {
			return nil, fmt.Errorf("there is room for %d arguments, the last of them number %d", spec.MostValues, spec.RegisterArguments+
				stackArguments)
		}
		value := spec.Arg(spec.FieldNone, uint8(n))
		value.Bits, value.Signed = argument.Bits, argument.Kind == spec.Signed
		if pointed {
			value.Derefs = 1
		}
		argument.Value = int8(len(captured))
		if argument.Kind == spec.String && len(captured) >= spec.MostStrings {
			return nil, fmt.Errorf("%s: a string must be among the first %d arguments that are read", argument.Name, spec.MostStrings)
		}
		captured = append(captured, value)
		asked.Arguments = append(asked.Arguments, argument)
	}
	return captured, nil
}

// stackArguments are read of those that find no register.
const stackArguments = 7
