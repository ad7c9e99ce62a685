package uprobe

import (
	"debug/elf"
	"errors"
	"fmt"
)

// Symbols finds functions of a file by their names, in its table of symbols or that
// of dynamic ones. Their cookies are 0.
func Symbols(path string, names ...string) (sites Sites, err error) {
	file, err := elf.Open(path)
	if err != nil {
		return sites, fmt.Errorf("reading the symbols of %s: %w", path, err)
	}
	defer file.Close()
	own, ownErr := file.Symbols()
	dynamic, dynamicErr := file.DynamicSymbols()
	at := map[string]uint64{}
	for _, s := range append(own, dynamic...) {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
			at[s.Name] = s.Value
		}
	}
	for _, name := range names {
		address, ok := at[name]
		if !ok {
			return sites, fmt.Errorf("%s has no function %s: %w", path, name, errors.Join(ownErr, dynamicErr, elf.ErrNoSymbols))
		}
		offset, ok := fileOffset(file, address)
		if !ok {
			return sites, fmt.Errorf("%s: no part of the file is at the address of %s, %#x", path, name, address)
		}
		sites.Add(offset, 0)
	}
	return sites, nil
}

func fileOffset(file *elf.File, address uint64) (uint64, bool) {
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address < p.Vaddr+p.Filesz {
			return address - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}
