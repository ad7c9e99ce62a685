//go:build libbpf

package uprobe

import "github.com/cilium/ebpf/link"

// Attacher is what attaches in place of this package, unless it is nil. The build tag libbpf
// is for tests.
var Attacher attacher

func another() attacher { return Attacher }

// Sheltered makes a link of another attacher one as Attach returns.
func Sheltered(l link.Link) link.Link { return shelteredLink{l} }
