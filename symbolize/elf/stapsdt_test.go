package elf

import (
	"encoding/binary"
	"testing"
)

// note is one of a USDT probe.
func note(owner string, kind uint32, description []byte) (b []byte) {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(owner)+1))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(description)))
	b = binary.LittleEndian.AppendUint32(b, kind)
	for b = append(append(b, owner...), 0); len(b)%4 != 0; {
		b = append(b, 0)
	}
	for b = append(b, description...); len(b)%4 != 0; {
		b = append(b, 0)
	}
	return b
}

func places(address, base, counter uint64, texts string) (b []byte) {
	for _, word := range []uint64{address, base, counter} {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return append(b, texts...)
}

// fileOf is a file whose one section of notes is this.
func fileOf(notes []byte) *File {
	return &File{data: notes, sections: []section{{kind: sectionNote, size: uint64(len(notes))}}}
}

func TestUSDTProbesAreThoseOfTheNotes(t *testing.T) {
	notes := append(note("GNU", 3, []byte("build id")), note("stapsdt", 3, places(0x1234, 0, 0x5678, "python\x00gc__start\x00-4@%edi\x00"))...)
	notes = append(notes, note("stapsdt", 3, places(0x2000, 0, 0, "a\x00b\x00\x00"))...)
	found := fileOf(notes).Probes()
	if len(found) != 2 || found[0] != (Probe{"python", "gc__start", 0x1234, 0x5678, "-4@%edi"}) || found[1].Name != "b" {
		t.Errorf("%+v", found)
	}
}

func TestDamagedNotesHaveNoProbes(t *testing.T) {
	whole := note("stapsdt", 3, places(0x1234, 0, 0, "python\x00line\x00\x00"))
	for end := range whole {
		fileOf(whole[:end]).Probes() // must end, and not panic
	}
	huge := append([]byte{}, whole...)
	binary.LittleEndian.PutUint32(huge[4:], 0xffffffff)
	if found := fileOf(huge).Probes(); len(found) != 0 {
		t.Errorf("a note that claims 4 GB: %+v", found)
	}
	if found := fileOf(note("stapsdt", 3, places(1, 0, 0, "no end"))).Probes(); len(found) != 0 {
		t.Errorf("a note without strings: %+v", found)
	}
}
