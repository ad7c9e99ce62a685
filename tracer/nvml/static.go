//go:build static

package nvml

// A static program has no dynamic linker.

func load(string) (uintptr, error) { return 0, ErrStatic }

func symbol(uintptr, string) uintptr { return 0 }

func invoke(uintptr, ...uintptr) uintptr { return uintptr(FunctionNotFound) }

func text(uintptr, Return) string { return "" }
