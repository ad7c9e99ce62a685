package process

import (
	"path"
	"strings"
)

// Framework is a machine-learning framework that a process has loaded.
type Framework struct {
	Name    string // "pytorch", "jax"
	Version string // "2.6.0+cu124", "" where no file says
	From    string // the file that says it, in the process's mount namespace
}

// Frameworks lists the frameworks among the libraries of the process, PyTorch
// first. Versions are read from the package's files through the process's own
// root; nothing is run.
func (p *Process) Frameworks(libraries []*Library) []Framework {
	var found []Framework
	if f, ok := p.pytorch(libraries); ok {
		found = append(found, f)
	}
	if f, ok := p.jax(libraries); ok {
		found = append(found, f)
	}
	return found
}

func (p *Process) pytorch(libraries []*Library) (Framework, bool) {
	f := Framework{Name: "pytorch"}
	var libtorch *Library
	for _, l := range libraries {
		if strings.HasPrefix(l.Name(), "libtorch_cpu.so") {
			libtorch = l
		}
	}
	if libtorch == nil {
		return f, false
	}
	// A wheel has its libraries below the package, a distribution elsewhere
	// and only the extension module torch._C in it.
	for _, l := range libraries {
		directory := packageDirectory(l.Path, "torch", "lib/")
		if directory == "" {
			directory = packageDirectory(l.Path, "torch", "_C.")
		}
		if directory == "" {
			continue
		}
		file := path.Join(directory, "version.py")
		if f.Version = p.versionFile(file); f.Version != "" {
			f.From = file
			return f, true
		}
		if f.Version, f.From = p.distribution(path.Dir(directory), "torch"); f.Version != "" {
			return f, true
		}
	}
	// C++ alone: the library download has a file, a distribution a name.
	file := path.Join(path.Dir(path.Dir(libtorch.Path)), "build-version")
	if text := p.versionText(file); text != "" && path.Base(path.Dir(libtorch.Path)) == "lib" {
		f.Version, f.From = text, file
		return f, true
	}
	if version, ok := strings.CutPrefix(libtorch.Name(), "libtorch_cpu.so."); ok {
		f.Version, f.From = version, libtorch.Path
	}
	return f, true
}

func (p *Process) jax(libraries []*Library) (Framework, bool) {
	f := Framework{Name: "jax"}
	for _, l := range libraries {
		directory := packageDirectory(l.Path, "jaxlib", "")
		if directory == "" {
			continue
		}
		site := path.Dir(directory)
		for _, name := range []string{"jax", "jaxlib"} {
			if f.Version, f.From = p.distribution(site, name); f.Version != "" {
				return f, true
			}
		}
		file := path.Join(directory, "version.py")
		if f.Version = p.versionFile(file); f.Version != "" {
			f.From = file
		}
		return f, true
	}
	return f, false
}

// packageDirectory is the directory of a Python package that a file lies in:
// packageDirectory("/s/torch/lib/libc10.so", "torch", "lib/") is "/s/torch".
func packageDirectory(file, name, below string) string {
	if at := strings.LastIndex(file, "/"+name+"/"+below); at >= 0 {
		return file[:at+1+len(name)]
	}
	return ""
}

// versionFile is the version in a version.py.
func (p *Process) versionFile(name string) string {
	return p.packages.version(name, func(name string) string { return quotedVersion(p.readInRoot(name)) })
}

// versionText is the version that is all of a file.
func (p *Process) versionText(name string) string {
	return p.packages.version(name, func(name string) string {
		if text := strings.TrimSpace(string(p.readInRoot(name))); len(text) <= 64 {
			return text
		}
		return ""
	})
}

// readInRoot reads a small file by its path in the process's mount namespace;
// nil if it cannot be read.
func (p *Process) readInRoot(name string) []byte {
	const small = 64 << 10
	b, err := p.fs.content(p.PID, name, small)
	if err != nil {
		return nil
	}
	return b
}
