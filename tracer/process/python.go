package process

import (
	"bytes"
	"encoding/binary"
	"errors"
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
// error when there is none. Nothing is run: the version is read from the file, once for as long
// as the process maps it.
func (p *Process) Python(libraries []*Library) (*Interpreter, error) {
	for _, l := range interpreterCandidates(p.Exe, libraries) {
		version, err := p.versions.of(l)
		if err != nil {
			if strings.HasPrefix(l.Name(), "libpython") {
				return nil, fmt.Errorf("finding the Python version: %w", err)
			}
			continue
		}
		if version.from == unknownVersion {
			return nil, fmt.Errorf("%w: %s was linked with one and its symbols were removed", ErrNoPythonVersion, l.Path)
		}
		if version.version != "" {
			return &Interpreter{Version: version.version, Library: l, From: version.from}, nil
		}
	}
	return nil, nil
}

// ErrNoPythonVersion: a program has a CPython in it and does not say which.
var ErrNoPythonVersion = errors.New("which version of Python this is cannot be told: do not strip the program")

// maxCandidates are the files of a process that are searched for CPython: a process has one
// libpython and one program.
const maxCandidates = 8

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
	return candidates[:min(len(candidates), maxCandidates)]
}

var (
	libpythonName = regexp.MustCompile(`^libpython[23]\.\d+[a-z]*\.so`)
	pythonName    = regexp.MustCompile(`^python[23](\.\d+)?[a-z]*$`)
	minorName     = regexp.MustCompile(`python([23]\.\d+)`)
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
	maxConstants  = 16 << 20 // of all files of a process together
	maxVersions   = 1 << 10
)

// pythonVersion reads the version from a file that has CPython in it. Of its constants so many
// are searched as are left; left is what is left then.
func pythonVersion(file *elf.File, minor string, left int) (version, from string, still int) {
	if s, ok := file.Lookup("Py_Version"); ok { // const unsigned long
		if b := file.CodeAt(s.Address, 8); len(b) == 8 {
			return formatVersion(uint32(binary.LittleEndian.Uint64(b))), "Py_Version", left
		}
	}
	function, ok := file.Lookup("Py_GetVersion")
	if !ok {
		return strippedVersion(file, left)
	}
	contents, address, ok := file.Section(".rodata")
	if !ok {
		return minor, "name", left
	}
	contents = contents[:min(len(contents), left)]
	code := file.CodeAt(function.Address, min(max(function.Size, 64), maxGetVersion))
	version, from = versionFromStrings(versionStrings(contents, address, minor), minor, func(address uint64) bool {
		return refersTo(code, function.Address, address)
	})
	return version, from, left - len(contents)
}

// unknownVersion is where the version of a file is from that has a CPython, and does not say which.
const unknownVersion = "nowhere"

// strippedVersion reads the version from a program that CPython was linked into and whose symbols
// are gone. Since 3.10 its _PyRuntime has a section to itself, which since 3.13 begins with the
// version; before, of all constants one alone may be a version that had such a section.
func strippedVersion(file *elf.File, left int) (version, from string, still int) {
	runtime, _, ok := file.Section(".PyRuntime")
	if !ok {
		return "", "", left
	}
	if len(runtime) >= 16 && string(runtime[:8]) == "xdebugpy" {
		return formatVersion(uint32(binary.LittleEndian.Uint64(runtime[8:]))), ".PyRuntime", left
	}
	contents, address, ok := file.Section(".rodata")
	if !ok {
		return "", unknownVersion, left
	}
	contents = contents[:min(len(contents), left)]
	left -= len(contents)
	distinct := map[string]bool{}
	for _, c := range versionStrings(contents, address, "") {
		if sectionedVersion.MatchString(c.version) {
			distinct[c.version], version = true, c.version
		}
	}
	if len(distinct) != 1 {
		return "", unknownVersion, left
	}
	return version, "string", left
}

// sectionedVersion is one with a section .PyRuntime, which does not begin with the version.
var sectionedVersion = regexp.MustCompile(`^3\.1[0-2]\.\d+`)

type versionConstant struct {
	version string
	address uint64
}

// versionStrings lists the string constants that may be PY_VERSION. The linker
// may have made it the end of another ("/opt/python/3.10.13"). A constant ends with a zero,
// and a version is short: what lies before each zero is all that is looked at.
func versionStrings(contents []byte, address uint64, minor string) []versionConstant {
	var found []versionConstant
	for at := 0; len(found) < maxVersions; at++ {
		end := bytes.IndexByte(contents[at:], 0)
		if end < 0 {
			break
		}
		begin := at + max(0, end-maxVersionBytes)
		at += end
		text := contents[begin:at]
		from := versionAtEnd(text)
		if from < 0 {
			continue
		}
		version := string(text[from:])
		before := byte(0)
		if from > 0 {
			before = text[from-1]
		}
		if before == '.' || before >= '0' && before <= '9' || minor != "" && !strings.HasPrefix(version, minor+".") {
			continue
		}
		found = append(found, versionConstant{version, address + uint64(begin+from)})
	}
	return found
}

// maxVersionBytes is one more than "3.10.13rc12+" and its like have.
const maxVersionBytes = 16

// versionAtEnd is where "3.10.13", "3.13.0rc2" or "3.12.1+" begins at the end of a text, -1
// where there is none. It reads from the end: of most constants the last character tells.
func versionAtEnd(text []byte) int {
	at := len(text)
	digits := func(most int) bool {
		n := 0
		for at > 0 && text[at-1] >= '0' && text[at-1] <= '9' && n < most {
			at, n = at-1, n+1
		}
		return n > 0
	}
	is := func(c string) bool { return at > 0 && strings.IndexByte(c, text[at-1]) >= 0 }
	if is("+") {
		at--
	}
	if !digits(maxVersionBytes) {
		return -1
	}
	if is("abc") { // of a pre-release: the patch comes before
		if at--; text[at] == 'c' && is("r") {
			at--
		}
		if !digits(2) {
			return -1
		}
	} else if patch := text[at:]; len(bytes.TrimRight(patch, "+")) > 2 {
		return -1
	}
	if !is(".") {
		return -1
	}
	if at--; !digits(2) || !is(".") {
		return -1
	}
	if at--; !is("23") {
		return -1
	}
	return at - 1
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
