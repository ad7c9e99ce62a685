package explain

import (
	"regexp"
	"strconv"
	"strings"
)

// nativeCall names the native function that a row's Python code calls: "array_concatenate of NumPy", or the library alone
// where it has no symbols.
func nativeCall(row *Row) string {
	f := row.Stack.Native()
	if f == nil || strings.HasPrefix(f.Module, "libtorch") || strings.HasPrefix(f.Module, "libc10") {
		return ""
	}
	of := nativeLibrary(f.Module)
	if f.Function == "" || strings.Contains(f.Function, "+0x") {
		return of
	}
	return cythonName(f.Function) + " of " + of
}

// cythonName is what the source calls a function that Cython made: __pyx_pw_5numpy_6random_10_generator_9Generator_33normal
// has the length before each name around it, and a number before its own.
func cythonName(function string) string {
	m := cython.FindStringSubmatch(function)
	if m == nil {
		return function
	}
	rest, around := m[1], ""
	for {
		digits := leadingDigits(rest)
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || digits+n >= len(rest) || rest[digits+n] != '_' {
			break
		}
		around, rest = rest[digits:digits+n], rest[digits+n+1:]
	}
	rest = rest[leadingDigits(rest):]
	if around == "" || rest == "" {
		return function
	}
	return around + "." + rest
}

var cython = regexp.MustCompile(`^__pyx_(?:pw|pf|f|fuse_\d+_?)_(.+)$`)

func leadingDigits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// nativePackage names the library alone.
func nativePackage(row *Row) string {
	if nativeCall(row) == "" {
		return ""
	}
	return nativeLibrary(row.Stack.Native().Module)
}

// nativeLibraries are the names of packages by the first part of their libraries' files.
var nativeLibraries = []struct{ prefix, name string }{
	{"_multiarray_umath", "NumPy"}, {"lib_lightgbm", "LightGBM"}, {"onnxruntime", "ONNX Runtime"}, {"libonnxruntime", "ONNX Runtime"},
	{"libxgboost", "XGBoost"}, {"libjax", "JAX"}, {"xla_extension", "JAX"}, {"_xla", "JAX"}, {"libtensorflow", "TensorFlow"},
	{"_catboost", "CatBoost"},
}

// nativeLibrary is what a native module is called: its package, else its file without version and suffix.
func nativeLibrary(module string) string {
	for _, l := range nativeLibraries {
		if strings.HasPrefix(module, l.prefix) {
			return l.name
		}
	}
	name, _, _ := strings.Cut(module, ".")
	return name
}
