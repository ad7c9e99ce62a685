package process

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/procfile"
)

// DaemonVariable makes PyTorch poll a local daemon for traces on demand; DaemonDirectoryVariable has it use sockets in a
// directory in place of abstract names (third_party/kineto, libkineto/src/init.cpp and FabricManager.h).
const (
	DaemonVariable          = "KINETO_USE_DAEMON"
	DaemonDirectoryVariable = "KINETO_IPC_SOCKET_DIR"
)

// Profiler is what is known of a process's own profiler.
type Profiler struct {
	// PyTorch is its version; "" where the process maps no PyTorch, or no file has the version.
	PyTorch string
	Mapped  bool // libtorch_cpu is
	// Client: this build of PyTorch has a client of the daemon.
	Client bool
	// Asks: the process was started with DaemonVariable.
	Asks bool
	// Directory is the value of DaemonDirectoryVariable; "" is absent.
	Directory string
}

// ownProfiler is a function of the client; PyTorch has it since 2.0 and exports it.
const ownProfiler = "_ZN9libkineto21IpcFabricConfigClient26getLibkinetoOndemandConfig"

// OwnProfiler says whether a process's own profiler can be asked for a trace. A variable that the program set by itself
// after its start (os.environ) is not seen: whoever polls the daemon has it all the same.
func (p *Process) OwnProfiler(libraries []*Library) Profiler {
	var found Profiler
	for _, f := range p.Frameworks(libraries) {
		if f.Name == "pytorch" {
			found.PyTorch = f.Version
		}
	}
	for _, l := range libraries {
		if strings.HasPrefix(l.Name(), "libtorch_cpu.so") {
			found.Mapped = true
			found.Client = found.Client || hasClient(l)
		}
	}
	environment, err := procfile.Read(p.path("environ"), maxEnvironment)
	if err != nil {
		return found
	}
	variables := keepNamed(environment, map[string]bool{DaemonVariable: true, DaemonDirectoryVariable: true})
	clear(environment)
	_, found.Asks = variables[DaemonVariable] // its value does not matter to PyTorch
	found.Directory = variables[DaemonDirectoryVariable]
	return found
}

// hasClient looks for the client among a library's symbols.
func hasClient(l *Library) (has bool) {
	e, err := l.OpenELF()
	if err != nil {
		return false
	}
	defer e.Close()
	_ = elf.Guard(func() { has = len(e.ExportedFunctions([]string{ownProfiler})) > 0 })
	return has
}
