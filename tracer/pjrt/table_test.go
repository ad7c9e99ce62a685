package pjrt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// made is a table of so many functions, at addresses from 0x1000 on.
func made(functions, major, minor int) []byte {
	b := make([]byte, headerSize+8*functions)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }
	put(0, uint64(len(b)))
	put(16, versionSize)
	put(32, uint64(major)|uint64(minor)<<32)
	for i := range functions {
		put(headerSize+8*i, 0x1000+16*uint64(i))
	}
	return b
}

func anywhere(uint64) place { return inside }

func set(b []byte, function int, address uint64) []byte {
	binary.LittleEndian.PutUint64(b[headerSize+8*function:], address)
	return b
}

func TestTablesAreTakenOrRefused(t *testing.T) {
	const execute = 55
	for _, c := range []struct {
		name      string
		table     []byte
		locate    func(uint64) place
		err       error
		functions int
		newer     int
		outside   int
		shared    int
	}{
		{"a whole table", made(138, 0, 114), anywhere, nil, 138, 0, 0, 0},
		{"an older one", made(100, 0, 40), anywhere, nil, 100, 0, 0, 0},
		{"a newer one", made(150, 0, 200), anywhere, nil, 138, 12, 0, 0},
		{"what it does not implement is null", set(made(138, 0, 114), 60, 0), anywhere, nil, 137, 0, 0, 0},
		{"two functions that are one", set(made(138, 0, 114), 60, 0x1000+16*61), anywhere, nil, 136, 0, 0, 2},
		{"a function of another library", made(138, 0, 114), func(a uint64) place {
			if a == 0x1000+16*70 {
				return outside
			}
			return inside
		}, nil, 137, 0, 1, 0},
		{"another major version", made(138, 1, 0), anywhere, ErrVersion, 0, 0, 0, 0},
		{"a pointer that leads nowhere", made(138, 0, 114), func(a uint64) place {
			if a == 0x1000 {
				return nowhere
			}
			return inside
		}, ErrNotBuilt, 0, 0, 0, 0},
		{"half made", set(made(138, 0, 114), execute, 0), anywhere, ErrNotBuilt, 0, 0, 0, 0},
		{"nothing but zeroes", make([]byte, headerSize+8*138), anywhere, ErrNotBuilt, 0, 0, 0, 0},
		{"shorter than it says", made(138, 0, 114)[:400], anywhere, ErrNotBuilt, 0, 0, 0, 0},
		{"too short", made(3, 0, 114), anywhere, ErrNotBuilt, 0, 0, 0, 0},
		{"a negative version", made(138, 0, -1), anywhere, ErrNotBuilt, 0, 0, 0, 0},
	} {
		table, err := parse(c.table, c.locate)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
			continue
		}
		if err != nil {
			continue
		}
		if len(table.Functions) != c.functions || table.Newer != c.newer || len(table.Outside) != c.outside || len(table.Shared) != c.shared {
			t.Errorf("%s: %d functions, %d newer, %d outside, %d shared; want %d, %d, %d, %d", c.name,
				len(table.Functions), table.Newer, len(table.Outside), len(table.Shared), c.functions, c.newer, c.outside, c.shared)
		}
	}
	table, err := parse(made(138, 0, 114), anywhere)
	if err != nil || table.Functions[execute] != (Function{"PJRT_LoadedExecutable_Execute", 0x1000 + 16*execute}) {
		t.Errorf("function %d is %v, %v", execute, table.Functions[execute], err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(made(138, 0, 114))
	f.Add(made(33, 1, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := parse(b, func(a uint64) place { return place(a % 3) })
		if err == nil && len(table.Functions)+len(table.Outside)+len(table.Shared) > len(fields) {
			t.Errorf("%d functions of %d", len(table.Functions), len(fields))
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xc3})
	f.Add([]byte{0x00, 0x00, 0x00, 0x90, 0x00, 0x40, 0x00, 0x91, 0xc0, 0x03, 0x5f, 0xd6})
	f.Fuzz(func(t *testing.T, code []byte) {
		decodeX86(0x1000, code)
		decodeARM64(0x1000, code)
	})
}

func TestAddressesAreFoundInCode(t *testing.T) {
	x86 := []byte{
		0x48, 0x8d, 0x05, 0xf9, 0x0f, 0, 0, // lea 0xff9(%rip), %rax: 0x2000
		0x48, 0x8b, 0x05, 0xf2, 0x1f, 0, 0, // mov 0x1ff2(%rip), %rax: 0x3000
		0xe9, 0xed, 0x2f, 0, 0, // jmp 0x4000
	}
	arm64 := binary.LittleEndian.AppendUint32(nil, 0xb0000000) // adrp x0, 0x2000
	for _, w := range []uint32{
		0x91004000, // add x0, x0, #16
		0xd0000001, // adrp x1, 0x3000
		0xf9400421, // ldr x1, [x1, #8]
		0x14000bfc, // b 0x4000
	} {
		arm64 = binary.LittleEndian.AppendUint32(arm64, w)
	}
	for _, c := range []struct {
		name   string
		decode func(uint64, []byte) []reference
		code   []byte
		want   []reference
	}{
		{"x86-64", decodeX86, x86, []reference{
			{candidate{0x2000, false}, true, false}, {candidate{0x3000, true}, true, false}, {candidate{0x4000, false}, false, true},
		}},
		{"arm64", decodeARM64, arm64, []reference{
			{candidate{0x2010, false}, true, false}, {candidate{0x3008, true}, true, false}, {candidate{0x4000, false}, false, true},
		}},
	} {
		got := c.decode(0x1000, bytes.Clone(c.code))
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: reference %d is %+v, want %+v", c.name, i, got[i], c.want[i])
			}
		}
	}
}
