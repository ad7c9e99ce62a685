package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Interpreter is the CPython that a process runs or embeds.
type Interpreter struct {
	Version string   // "3.11.7", "3.13.0rc2"
	Library *Library // libpython, or the program that has it linked in
	// From says how the version is known: "Py_Version", the constant that
	// CPython exports since 3.11; "string", the one that sys.version begins
	// with; or "name", the file's, which tells no more than "3.10".
	From string
}

// Python finds CPython among the libraries of the process; nil without an
// error when there is none. Nothing is run: the version is read from the file.
func (p *Process) Python(libraries []*Library) (*Interpreter, error) {
	for _, l := range interpreterCandidates(p.Exe, libraries) {
		file, err := l.OpenELF()
		if err != nil {
			if strings.HasPrefix(l.Name(), "libpython") {
				return nil, fmt.Errorf("finding the Python version: %w", err)
			}
			continue
		}
		var version, from string
		err = elf.Guard(func() { version, from = pythonVersion(file, minorVersion(l.Name())) })
		file.Close()
		if err != nil {
			continue
		}
		if version != "" {
			return &Interpreter{Version: version, Library: l, From: from}, nil
		}
	}
	return nil, nil
}

// interpreterCandidates puts libpython before the program: a program that uses
// the library is called python, too.
func interpreterCandidates(exe string, libraries []*Library) []*Library {
	var candidates []*Library
	for _, l := range libraries {
		if libpythonName.MatchString(l.Name()) {
			candidates = append(candidates, l)
		}
	}
	for _, l := range libraries {
		// The dynamic loader may have been run as a program (`ld.so python3`).
		if l.Path == exe || pythonName.MatchString(l.Name()) {
			candidates = append(candidates, l)
		}
	}
	return candidates
}

var (
	libpythonName = regexp.MustCompile(`^libpython[23]\.\d+[a-z]*\.so`)
	pythonName    = regexp.MustCompile(`^python[23](\.\d+)?[a-z]*$`)
	minorName     = regexp.MustCompile(`python([23]\.\d+)`)
	versionString = regexp.MustCompile(`[23]\.\d{1,2}\.\d{1,2}(?:(?:a|b|c|rc)\d+)?\+?\x00`)
)

// minorVersion is the "3.10" in a file name, "" if it has none.
func minorVersion(name string) string {
	if m := minorName.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}

// Bounds of the search for the version, which takes their product: Py_GetVersion
// has some 100 bytes, CPython's constants 2 MB, and few of them look like versions.
const (
	maxGetVersion = 4 << 10
	maxConstants  = 64 << 20
	maxVersions   = 1 << 10
)

// pythonVersion reads the version from a file that has CPython in it.
func pythonVersion(file *elf.File, minor string) (version, from string) {
	if s, ok := file.Lookup("Py_Version"); ok { // const unsigned long
		if b := file.CodeAt(s.Address, 8); len(b) == 8 {
			return formatVersion(uint32(binary.LittleEndian.Uint64(b))), "Py_Version"
		}
	}
	function, ok := file.Lookup("Py_GetVersion")
	if !ok {
		return "", ""
	}
	contents, address, ok := file.Section(".rodata")
	if !ok {
		return minor, "name"
	}
	code := file.CodeAt(function.Address, min(max(function.Size, 64), maxGetVersion))
	return versionFromStrings(versionStrings(contents[:min(len(contents), maxConstants)], address, minor), minor, func(address uint64) bool {
		return refersTo(code, function.Address, address)
	})
}

type versionConstant struct {
	version string
	address uint64
}

// versionStrings lists the string constants that may be PY_VERSION. The linker
// may have made it the end of another ("/opt/python/3.10.13").
func versionStrings(contents []byte, address uint64, minor string) []versionConstant {
	var found []versionConstant
	for _, at := range versionString.FindAllIndex(contents, maxVersions) {
		version := string(contents[at[0] : at[1]-1])
		before := byte(0)
		if at[0] > 0 {
			before = contents[at[0]-1]
		}
		if before == '.' || before >= '0' && before <= '9' || minor != "" && !strings.HasPrefix(version, minor+".") {
			continue
		}
		found = append(found, versionConstant{version, address + uint64(at[0])})
	}
	return found
}

// versionFromStrings picks the constant that Py_GetVersion refers to, or the
// only one there is.
func versionFromStrings(constants []versionConstant, minor string, referred func(uint64) bool) (version, from string) {
	distinct := map[string]bool{}
	for _, c := range constants {
		if referred(c.address) {
			return c.version, "string"
		}
		distinct[c.version], version = true, c.version
	}
	switch {
	case len(distinct) == 1:
		return version, "string"
	case minor != "":
		return minor, "name"
	}
	return "", ""
}

// refersTo looks for an operand of x86-64 code that is the address: relative
// to the next instruction, or absolute. On arm64 it finds nothing.
func refersTo(code []byte, start, address uint64) bool {
	for i := 0; i+4 <= len(code); i++ {
		operand := binary.LittleEndian.Uint32(code[i:])
		next := start + uint64(i) + 4
		if next+uint64(int64(int32(operand))) == address || uint64(operand) == address {
			return true
		}
	}
	return false
}

// formatVersion prints PY_VERSION_HEX: 0x030b07f0 is 3.11.7.
func formatVersion(hex uint32) string {
	version := fmt.Sprintf("%d.%d.%d", hex>>24, hex>>16&0xff, hex>>8&0xff)
	if level := map[uint32]string{0xa: "a", 0xb: "b", 0xc: "rc"}[hex>>4&0xf]; level != "" {
		version += fmt.Sprintf("%s%d", level, hex&0xf)
	}
	return version
}

// quotedVersion finds `__version__ = '2.6.0'` in a version.py.
func quotedVersion(source []byte) string {
	for line := range bytes.Lines(source) {
		if m := versionAssignment.FindSubmatch(line); m != nil {
			return string(m[1])
		}
	}
	return ""
}

var versionAssignment = regexp.MustCompile(`^(?:__version__|_version)\s*(?::\s*\w+\s*)?=\s*['"]([^'"]{1,64})['"]`)
