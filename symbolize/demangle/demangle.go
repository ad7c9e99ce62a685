// Package demangle makes names of C++ and Rust readable, within bounds: a symbol
// table is written by whoever wrote the file.
//
// The package is no part of the public API: it may change with any version.
package demangle

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxShort is 2^n characters: names that people read, not type lists.
const maxShort = 9

// maxFull is 2^n characters.
const maxFull = 12

// maxMangled bounds what is demangled: the time grows with the cube of the length,
// to 8.6 s for 60,000 characters that were made for it, 40 ms for so many. The
// longest name in a wheel's libtorch has 1,466, in jaxlib 3,324; a few of LLVM's in
// Triton have more and stay as they are.
const maxMangled = 4 << 10

// Short returns the short name of a C++ or Rust function: no parameters, no
// template arguments, no clone suffix. Other names come back as they are. It
// is slow (microseconds): call it for names that are shown.
func Short(name string) string {
	if !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") && !strings.HasPrefix(name, "__Z") {
		return name
	}
	if len(name) > maxMangled {
		return Clip(name)
	}
	return demangle.Filter(name, demangle.NoParams, demangle.NoTemplateParams,
		demangle.NoEnclosingParams, demangle.NoClones, demangle.MaxLength(maxShort))
}

// Clip cuts a name that stays mangled to the length that Short's results have at most.
func Clip(name string) string { return name[:min(len(name), 1<<maxShort)] }

// Full returns a name with its parameters and template arguments: what tells
// one kernel of a template from the next. Other names come back as they are.
func Full(name string) string {
	if !strings.HasPrefix(name, "_Z") {
		return name
	}
	if len(name) > maxMangled {
		return name[:1<<maxFull]
	}
	return demangle.Filter(name, demangle.NoClones, demangle.MaxLength(maxFull))
}

// Type names a type, with its template arguments; mangled is what follows "_ZTV" in
// the symbol of a class's vtable. Not ok for what is no type.
func Type(mangled string) (name string, ok bool) {
	if len(mangled) > maxMangled {
		return "", false
	}
	name, err := demangle.ToString("_Z"+mangled, demangle.NoParams, demangle.MaxLength(maxShort))
	return name, err == nil
}
