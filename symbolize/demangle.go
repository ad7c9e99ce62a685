package symbolize

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled is 2^n characters: names that people read, not type lists.
const maxDemangled = 9

// maxMangled bounds what is demangled: the time grows with the cube of the length,
// to 8.6 s for 60,000 characters that were made for it, 40 ms for so many. The
// longest name in a wheel's libtorch has 1,466, in jaxlib 3,324; a few of LLVM's in
// Triton have more and stay as they are.
const maxMangled = 4 << 10

// Demangle returns the short name of a C++ or Rust function: no parameters, no
// template arguments, no clone suffix. Other names come back as they are. It
// is slow (microseconds): call it for names that are shown.
func Demangle(name string) string {
	if !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") && !strings.HasPrefix(name, "__Z") {
		return name
	}
	if len(name) > maxMangled {
		return name[:1<<maxDemangled]
	}
	return demangle.Filter(name, demangle.NoParams, demangle.NoTemplateParams,
		demangle.NoEnclosingParams, demangle.NoClones, demangle.MaxLength(maxDemangled))
}

// DemangleFull returns a name with its parameters and template arguments: what
// tells one kernel of a template from the next. Other names come back as they are.
func DemangleFull(name string) string {
	if !strings.HasPrefix(name, "_Z") {
		return name
	}
	if len(name) > maxMangled {
		return name[:1<<maxDemangledFull]
	}
	return demangle.Filter(name, demangle.NoClones, demangle.MaxLength(maxDemangledFull))
}

// maxDemangledFull is 2^n characters.
const maxDemangledFull = 12
