package cpython

import (
	"fmt"
	"maps"
	"testing"
)

const (
	fakeCode     = 0x2000000
	fakeCodeType = 0xc0de0
)

func fakeResolver(version Version) (*Resolver, fakeMemory, *Offsets) {
	rt := &Runtime{Version: version, Offsets: Lookup(version).Offsets, CodeType: fakeCodeType}
	m := fakeMemory{}
	m.code(&rt.Offsets, fakeCode, fakeCodeType, "f", "file.py")
	return NewResolver(rt, m), m, &rt.Offsets
}

func checksumOf(o *Offsets, m fakeMemory, code uint64) uint32 { return o.Checksum(m[code]) }

func TestNamesOfEveryStringKindAreRead(t *testing.T) {
	for _, version := range []Version{{3, 8, 0, false}, {3, 11, 0, false}, {3, 12, 0, false}, {3, 14, 0, true}} {
		for kind, name := range map[int]string{0: "ascii", 1: "modèle", 2: "訓練", 4: "𐌰😀"} {
			r, m, o := fakeResolver(version)
			m.text(o, fakeCode+0x1000, name, kind)
			m.text(o, fakeCode+0x2000, name, kind)
			m.text(o, fakeCode+0x3000, "/"+name+".py", kind)
			code, err := r.Resolve(fakeCode, checksumOf(o, m, fakeCode))
			if err != nil || code.Function != name || code.File != "/"+name+".py" {
				t.Errorf("%s, kind %d: %+v, %v", version, kind, code, err)
			}
		}
	}
}

func TestFramesWithoutANameAreCountedByReason(t *testing.T) {
	version := Version{3, 13, 0, false}
	for reason, spoil := range map[Unresolved]func(o *Offsets, m fakeMemory){
		UnresolvedUnreadable: func(_ *Offsets, m fakeMemory) { delete(m, fakeCode) },
		UnresolvedReused:     func(o *Offsets, m fakeMemory) { m.word(fakeCode+uint64(o.CodeName), 0x77770000) },
		UnresolvedNotCode:    func(o *Offsets, m fakeMemory) { m.word(fakeCode+uint64(o.ObjectType), 1) },
		UnresolvedName:       func(o *Offsets, m fakeMemory) { m.word(fakeCode+0x3000+uint64(o.UnicodeState), 0) },
		UnresolvedLines:      func(_ *Offsets, m fakeMemory) { delete(m, fakeCode+0x4000) },
	} {
		r, m, o := fakeResolver(version)
		checksum := checksumOf(o, m, fakeCode)
		spoil(o, m)
		_, err := r.Resolve(fakeCode, checksum)
		if got, ok := ReasonOf(err); !ok || got != reason {
			t.Errorf("%s: %v", reason.Name(), err)
		}
		if r.Unresolved[reason] != 1 {
			t.Errorf("%s is not counted: %v", reason.Name(), r.Unresolved)
		}
	}
}

func TestANameOutlivesItsCodeObject(t *testing.T) {
	r, m, o := fakeResolver(Version{3, 13, 0, false})
	checksum := checksumOf(o, m, fakeCode)
	if _, err := r.Resolve(fakeCode, checksum); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(m, func(uint64, []byte) bool { return true })
	if code, err := r.Resolve(fakeCode, checksum); err != nil || code.Function != "f" {
		t.Errorf("%v, %v", code, err)
	}
	if _, err := r.Resolve(fakeCode, checksum+1); err == nil {
		t.Error("another code object at the address has the old name")
	}
}

func TestANameReadAheadIsThereWhenTheCodeIsGone(t *testing.T) {
	r, m, o := fakeResolver(Version{3, 13, 0, false})
	checksum := checksumOf(o, m, fakeCode)
	r.Read(fakeCode, checksum)
	maps.DeleteFunc(m, func(uint64, []byte) bool { return true })
	if code, err := r.Resolve(fakeCode, checksum); err != nil || code.Function != "f" {
		t.Errorf("%v, %v", code, err)
	}
	r.Read(fakeCode, checksum+1)
	if r.Unresolved != [UnresolvedReasons]uint64{} {
		t.Errorf("what was only read ahead is counted: %v", r.Unresolved)
	}
}

func TestAColdCodeObjectIsNamedButNotRemembered(t *testing.T) {
	r, m, o := fakeResolver(Version{3, 13, 0, false})
	if code, err := r.Resolve(fakeCode, 0); err != nil || code.Function != "f" {
		t.Fatalf("%v, %v", code, err)
	}
	m.text(o, fakeCode+0x1000, "g", 0)
	if code, err := r.Resolve(fakeCode, 0); err != nil || code.Function != "g" {
		t.Errorf("%v, %v", code, err)
	}
}

func TestTheResolverForgetsTheLeastRecentlyUsed(t *testing.T) {
	r, m, o := fakeResolver(Version{3, 13, 0, false})
	r.limit = 2
	resolve := func(n int) {
		address := uint64(fakeCode + n*0x10000)
		m.code(o, address, fakeCodeType, fmt.Sprint("f", n), "file.py")
		if _, err := r.Resolve(address, checksumOf(o, m, address)); err != nil {
			t.Fatal(err)
		}
	}
	resolve(1)
	resolve(2)
	resolve(1)
	resolve(3)
	if len(r.byKey) != 2 || r.recent.Len() != 2 {
		t.Fatalf("%d and %d are cached", len(r.byKey), r.recent.Len())
	}
	for n, want := range map[int]bool{1: true, 2: false, 3: true} {
		address := uint64(fakeCode + n*0x10000)
		if _, known := r.byKey[codeKey{address, checksumOf(o, m, address)}]; known != want {
			t.Errorf("code object %d is cached: %v", n, known)
		}
	}
}

// FuzzCode reads a code object and all that it refers to out of foreign bytes.
func FuzzCode(f *testing.F) {
	_, m, _ := fakeResolver(Version{3, 12, 0, false})
	f.Add(m[fakeCode], m[fakeCode+0x1000], uint8(12))
	f.Fuzz(func(t *testing.T, code, text []byte, minor uint8) {
		table := Lookup(Version{3, 8 + int(minor%7), 0, minor > 128})
		if table == nil || len(code) < CodeBytes {
			return
		}
		m := fakeMemory{fakeCode: code}
		for i := range uint64(4) {
			m[fakeCode+0x1000*(i+1)] = text
		}
		rt := &Runtime{Version: Version{3, table.Minor, 0, table.FreeThreaded}, Offsets: table.Offsets}
		if c, err := NewResolver(rt, m).Resolve(fakeCode, 0); err == nil {
			c.Line(5)
		}
	})
}
