//go:build !static

package nvml

import (
	"fmt"
	"strings"

	"github.com/ebitengine/purego"
)

// load loads a library. Symbols are resolved when they are looked up, and are no other library's.
func load(path string) (uintptr, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_LAZY|purego.RTLD_LOCAL)
	if err == nil {
		return handle, nil
	}
	if strings.Contains(err.Error(), "No such file") {
		return 0, ErrNoLibrary
	}
	return 0, fmt.Errorf("loading NVIDIA's library: %w", err)
}

// symbol is the address of a function, 0 if there is none.
func symbol(handle uintptr, name string) uintptr {
	at, err := purego.Dlsym(handle, name)
	if err != nil {
		return 0
	}
	return at
}

//go:uintptrescapes
func invoke(function uintptr, arguments ...uintptr) uintptr {
	result, _, _ := purego.SyscallN(function, arguments...)
	return result
}

// text calls a function that returns a string.
func text(function uintptr, r Return) string {
	var of func(uint32) string
	purego.RegisterFunc(&of, function)
	return of(uint32(r))
}
