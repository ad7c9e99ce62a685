package process

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize"
)

// Mappings lists what the process can execute now, files and other memory, for
// symbolize.Names. The errors are Libraries'.
func (p *Process) Mappings() ([]symbolize.Mapping, error) {
	maps, err := p.readMaps()
	if err != nil {
		return nil, err
	}
	libraries, err := parseLibraries(maps)
	if err != nil {
		return nil, fmt.Errorf("reading the maps of pid %d: %w", p.PID, err)
	}
	byInode := map[symbolize.FileKey]*Library{}
	for _, l := range libraries {
		l.process = p
		byInode[l.key()] = l
	}
	var mappings []symbolize.Mapping
	for line := range bytes.Lines(maps) {
		m, ok := parseMapping(bytes.TrimSuffix(line, []byte{'\n'}))
		if !ok || !m.executable {
			continue
		}
		path, _ := strings.CutSuffix(unescape(m.path), " (deleted)")
		to := symbolize.Mapping{Start: m.start, End: m.end, FileOffset: m.offset, Path: path}
		to.Key = symbolize.FileKey{Major: m.device.Major, Minor: m.device.Minor, Inode: m.inode}
		if l := byInode[to.Key]; l != nil && m.inode != 0 {
			to.Open = l.OpenELF
		}
		mappings = append(mappings, to)
	}
	return mappings, nil
}

func (l *Library) key() symbolize.FileKey {
	return symbolize.FileKey{Major: l.Device.Major, Minor: l.Device.Minor, Inode: l.Inode}
}
