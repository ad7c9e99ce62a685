package features

import (
	"os"
)

// The inode numbers of the first namespaces are constants of the kernel:
// include/linux/proc_ns.h, PROC_PID_INIT_INO and PROC_USER_INIT_INO.
const (
	initialPIDNamespace  = "pid:[4026531836]"
	initialUserNamespace = "user:[4026531837]"
)

// CheckNamespaces returns an error where the tracer's own namespaces are in the
// way (ErrUnsupported, ErrNotPermitted): the kernel's programs see the pids of the first pid namespace, /proc
// those of ours; and BPF asks for capabilities in the first user namespace.
func CheckNamespaces() error {
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != initialPIDNamespace {
		return refuse(ErrUnsupported, "ebpfprof runs in a pid namespace of its own, where /proc shows other pids than probes see: run it on "+
			"the host, or in a container with the host's pid namespace (docker run --pid=host)")
	}
	if ns, err := os.Readlink("/proc/self/ns/user"); err == nil && ns != initialUserNamespace {
		return refuse(ErrNotPermitted, "ebpfprof runs in a user namespace, whose capabilities do not count for BPF: run it as root of the host")
	}
	return nil
}
