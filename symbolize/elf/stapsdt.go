package elf

import "bytes"

// USDT probes: an instruction that does nothing, and a note that says where it is and where its arguments are. The format
// is that of SystemTap's sys/sdt.h.

// Probe is one place of a USDT probe. A probe has several where its function was inlined.
type Probe struct {
	Provider, Name string
	Address        uint64 // of the instruction, in the file's virtual addresses
	Counter        uint64 // of the 16 bits that count who looks, 0 if the probe has none
	Arguments      string // where each is, as the note says: -4@%edi 8@-16(%rbp)
}

const (
	probeOwner = "stapsdt"
	probeNote  = 3
	// maxProbes and maxProbeText bound what a damaged file makes its reader keep.
	maxProbes    = 1 << 14
	maxProbeText = 1 << 10
)

// Probes lists the USDT probes of a file, in the order of their notes.
func (e *File) Probes() []Probe {
	var found []Probe
	_, base, linked := e.Section(".stapsdt.base")
	for i := range e.sections {
		s := &e.sections[i]
		if s.kind != sectionNote {
			continue
		}
		for notes := e.slice(s.offset, s.size); len(notes) >= noteHeader && len(found) < maxProbes; {
			owner, kind, description, rest := cutNote(notes)
			notes = rest
			if owner != probeOwner || kind != probeNote {
				continue
			}
			if p, then, ok := parseProbe(description); ok {
				// The notes are not loaded, and so are not adjusted when a file is linked again (prelink).
				if linked && then != 0 {
					p.Address += base - then
					if p.Counter != 0 {
						p.Counter += base - then
					}
				}
				found = append(found, p)
			}
		}
	}
	return found
}

const noteHeader = 12

// cutNote takes the first of some notes; of a damaged one nothing is left.
func cutNote(notes []byte) (owner string, kind uint32, description, rest []byte) {
	nameSize, size := uint64(le.Uint32(notes)), uint64(le.Uint32(notes[4:]))
	kind = le.Uint32(notes[8:])
	from := noteHeader + (nameSize+3)&^3
	to := from + size
	if nameSize == 0 || to > uint64(len(notes)) {
		return "", 0, nil, nil
	}
	owner = string(bytes.TrimRight(notes[noteHeader:noteHeader+nameSize], "\x00"))
	return owner, kind, notes[from:to], notes[min((to+3)&^3, uint64(len(notes))):]
}

// parseProbe reads three addresses and three strings; base is where the section .stapsdt.base was.
func parseProbe(b []byte) (p Probe, base uint64, ok bool) {
	if len(b) < 24 {
		return p, 0, false
	}
	p.Address, base, p.Counter = le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])
	b = b[24:]
	for _, text := range []*string{&p.Provider, &p.Name, &p.Arguments} {
		end := bytes.IndexByte(b[:min(len(b), maxProbeText)], 0)
		if end < 0 {
			return p, 0, false
		}
		*text, b = string(b[:end]), b[end+1:]
	}
	return p, base, p.Provider != "" && p.Name != ""
}
