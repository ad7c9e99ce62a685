package process

import (
	"path"
	"strings"
	"sync"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"golang.org/x/sys/unix"
)

// What is read of a process's files to tell versions is read once: a job may map thousands of
// files that are called like an interpreter's, or lie below a directory called torch.

// versions are those of the files of one process that may be CPython. The methods may be
// called from any goroutine.
type versions struct {
	mu       sync.Mutex
	known    map[mappedFile]pythonFile
	searched int // bytes of constants
}

// mappedFile is a file for as long as a process maps it.
type mappedFile struct {
	id   FileID
	path string
}

// pythonFile is what a file says; version is "" where it has no CPython in it.
type pythonFile struct{ version, from string }

// maxVersionsKnown bounds what is kept; what a process has mapped since is searched anew then.
const maxVersionsKnown = 64

// of is the version of a library. The error is that of opening it, which is not kept.
func (v *versions) of(l *Library) (pythonFile, error) {
	if v == nil {
		v = &versions{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := mappedFile{l.ID(), l.Path}
	if known, ok := v.known[key]; ok {
		return known, nil
	}
	file, err := l.OpenELF()
	if err != nil {
		return pythonFile{}, err
	}
	defer file.Close()
	var found pythonFile
	left := maxConstants - v.searched
	if err := elf.Guard(func() { found.version, found.from, left = pythonVersion(file, minorVersion(l.Name()), left) }); err != nil {
		found = pythonFile{}
	}
	v.searched = maxConstants - left
	if v.known == nil || len(v.known) >= maxVersionsKnown {
		v.known = map[mappedFile]pythonFile{}
	}
	v.known[key] = found
	return found, nil
}

// packages are the directories of one process's packages, each read once.
type packages struct {
	mu       sync.Mutex
	versions map[string]string   // by file, "" where it says none
	sites    map[string][]string // names in a directory that say a version
	names    int                 // read of directories
}

// Bounds of what is read of a process's packages.
const (
	maxPackageFiles = 64
	maxSites        = 16
	maxNames        = 1 << 16 // in all directories together
)

// version is what a file says, which is read once.
func (k *packages) version(file string, read func(name string) string) string {
	if k == nil {
		k = &packages{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.versions[file]; ok || len(k.versions) >= maxPackageFiles {
		return known
	}
	if k.versions == nil {
		k.versions = map[string]string{}
	}
	k.versions[file] = read(file)
	return k.versions[file]
}

// distribution reads a package's version off the directory that pip made:
// torch-2.6.0.dist-info.
func (p *Process) distribution(site, name string) (version, from string) {
	for _, entry := range p.packages.site(p, site) {
		rest, ok := strings.CutPrefix(entry, name+"-")
		if !ok {
			continue
		}
		if version, ok := strings.CutSuffix(rest, ".dist-info"); ok {
			return version, path.Join(site, entry)
		}
	}
	return "", ""
}

// site lists the names in a directory that say a framework's version.
func (k *packages) site(p *Process, site string) []string {
	if k == nil {
		k = &packages{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.sites[site]; ok || len(k.sites) >= maxSites {
		return known
	}
	if k.sites == nil {
		k.sites = map[string][]string{}
	}
	k.sites[site] = nil
	found := p.fs.namesIn(p.PID, site, maxNames-k.names)
	k.names += found.Read
	k.sites[site] = found.Names
	return found.Names
}

// siteNames are names of a directory that say a framework's version.
type siteNames struct {
	Names []string
	Read  int // names of the directory that were looked at
}

func (f FS) namesIn(pid int, site string, limit int) siteNames {
	if !f.asked() {
		return f.versionNames(pid, site, limit)
	}
	found, _ := list[siteNames](pid, askNames, pathOf{pid, site, int64(limit)})
	return found
}

func (f FS) versionNames(pid int, site string, limit int) (found siteNames) {
	directory, err := f.openIn(pid, site, unix.S_IFDIR)
	if err != nil {
		return siteNames{}
	}
	defer directory.Close()
	for found.Read < limit {
		entries, err := directory.Readdirnames(min(1024, limit-found.Read))
		found.Read += len(entries)
		for _, entry := range entries {
			if strings.HasSuffix(entry, ".dist-info") && (strings.HasPrefix(entry, "torch-") || strings.HasPrefix(entry, "jax")) {
				found.Names = append(found.Names, entry)
			}
		}
		if err != nil || len(entries) == 0 {
			break
		}
	}
	return found
}
