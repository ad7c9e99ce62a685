// Package features says whether this machine may be traced, and with what: which
// features the kernel has, found by trying each; the kernels on which probes are known
// to do harm; the capabilities that this process lacks; the administrator's kill switch;
// and the namespaces from which tracing is not possible.
//
// It owns the errors ErrNotPermitted and ErrUnsupported, which every refusal wraps.
package features
