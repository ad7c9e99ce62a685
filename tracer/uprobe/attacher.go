//go:build !libbpf

package uprobe

// another is what attaches in place of this package: nothing, but in tests with the build
// tag libbpf.
func another() attacher { return nil }
