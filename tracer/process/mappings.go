package process

import (
	"bytes"
	"errors"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize"
	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// Mappings lists what the process can execute now, files and other memory, for
// symbolize.Names. The errors are Libraries'.
func (p *Process) Mappings() ([]symbolize.Mapping, error) {
	maps, err := p.readMaps()
	if err != nil {
		return nil, err
	}
	libraries, err := p.libraries(maps)
	if err != nil {
		return nil, err
	}
	byInode := map[symbolize.FileKey]*Library{}
	for _, l := range libraries {
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
		switch l := byInode[to.Key]; {
		case m.inode == 0:
		case l != nil:
			to.Open = l.OpenELF
		default:
			to.Open = func() (*elf.File, error) { return nil, errBeyond }
		}
		mappings = append(mappings, to)
	}
	return mappings, nil
}

// errBeyond: a file that is not looked at.
var errBeyond = errors.New("more files than are looked at")

func (l *Library) key() symbolize.FileKey {
	return symbolize.FileKey{Major: l.Device.Major, Minor: l.Device.Minor, Inode: l.Inode}
}
