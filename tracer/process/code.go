package process

import (
	"bytes"
	"fmt"
	"strings"
)

// Code is one executable mapping of a process.
type Code struct {
	Start, End uint64 // addresses in the process
	FileOffset uint64
	Library    *Library // nil where no file is behind it
	// Name is what the kernel calls memory without a file: "[vdso]", "[uprobes]",
	// "" for what mmap gave, for generated code.
	Name string
}

// Code lists the executable mappings of the process by address. The errors are
// those of Libraries.
func (p *Process) Code() ([]Code, error) {
	maps, err := p.readMaps()
	if err != nil {
		return nil, err
	}
	libraries, err := p.libraries(maps)
	if err != nil {
		return nil, err
	}
	return parseCode(maps, libraries)
}

func parseCode(maps []byte, libraries []*Library) ([]Code, error) {
	byStart := map[uint64]*Library{}
	for _, l := range libraries {
		for _, s := range l.Segments {
			byStart[s.Start] = l
		}
	}
	var code []Code
	for line := range bytes.Lines(maps) {
		m, ok := parseMapping(bytes.TrimSuffix(line, []byte{'\n'}))
		if !ok {
			return nil, fmt.Errorf("unreadable line in maps: %.80q", line)
		}
		if !m.executable {
			continue
		}
		c := Code{Start: m.start, End: m.end, FileOffset: m.offset, Library: byStart[m.start]}
		if c.Library == nil {
			c.Name = strings.TrimSpace(string(m.path))
		}
		code = append(code, c)
	}
	return code, nil
}
