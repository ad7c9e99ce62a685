// Package usercode owns what is the user's own code, and what belongs to Python, its
// packages and frameworks, and to which part of PyTorch: by the path of a frame's file, in
// Go and in DuckDB's SQL.
package usercode

import (
	"regexp"
	"strings"
)

// foreign are paths of code that is not the user's own: a regular expression of Go and
// of DuckDB alike. A library is mapped from an absolute path, the user's script need not
// be. torch.profiler cuts the directories of sys.path off, so that packages and the
// standard library are known by their names there.
// Modules that Inductor generates are called by a hash, wherever they are kept. Code without a file is called <something>;
// IPython calls the cells that its user runs <ipython-input-2-…>.
const foreign = `(^|/)(site-packages|dist-packages|torch|jax|jaxlib|torchvision|numpy)/|/lib(64)?/python[0-9]|(^|/)[a-z2-7]{2}/c[a-z2-7]{51}\.py$|^<([^i]|i[^p])|^(` + standard + `)[./]`

// standard are modules of Python's library that stacks of training jobs show.
const standard = `threading|runpy|contextlib|functools|selectors|socket|queue|subprocess|inspect|typing|re|json|logging|` +
	`multiprocessing|concurrent|asyncio|importlib|unittest|collections|random|copy|abc|os|genericpath|posixpath|tempfile|` +
	`shutil|warnings|weakref|enum|dataclasses|traceback|codecs|encodings|pickle|struct|string|tokenize|ast|dis|pdb|cProfile|` +
	`profile|timeit|argparse`

var pattern = regexp.MustCompile(foreign)

// Is reports whether a Python frame of a file is the user's own code. A frame without a
// file is not.
func Is(file string) bool { return file != "" && !pattern.MatchString(file) }

// SQL is true, in DuckDB, for the files for which Is is; column is an expression of
// text, NULL for none.
func SQL(column string) string {
	quoted := strings.ReplaceAll(foreign, "'", "''")
	return "(coalesce(" + column + ", '') <> '' AND NOT regexp_matches(" + column + ", '" + quoted + "'))"
}

// Paths of PyTorch's own modules, as a library is mapped and as torch.profiler cuts them.
const (
	optimizer = `(^|/)torch/optim/[^/]+\.py$`
	loader    = `(^|/)torch/utils/data/`
)

var optimizerPattern, loaderPattern = regexp.MustCompile(optimizer), regexp.MustCompile(loader)

// IsOptimizer reports whether a file is one of PyTorch's optimizers: what is called from
// there is a step of one, as its scope Optimizer.step is where there are scopes.
func IsOptimizer(file string) bool { return optimizerPattern.MatchString(file) }

// IsLoader reports whether a file is PyTorch's data loader, or what it collates with.
func IsLoader(file string) bool { return loaderPattern.MatchString(file) }

// OptimizerSQL is true, in DuckDB, for the files for which IsOptimizer is.
func OptimizerSQL(column string) string { return matches(column, optimizer) }

// LoaderSQL is true, in DuckDB, for the files for which IsLoader is.
func LoaderSQL(column string) string { return matches(column, loader) }

func matches(column, expression string) string {
	return "coalesce(regexp_matches(" + column + ", '" + expression + "'), false)"
}
