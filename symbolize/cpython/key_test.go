package cpython

import (
	"errors"
	"testing"
)

const (
	fakeRuntime = 0x100000
	fakeSelf    = 0x7f0000001000
	fakeState   = 0x5550000
)

// fakeKey is a process whose one thread has its state under a key, and whose
// autoTSSkey is shift bytes behind the place where the version has it.
func fakeKey(key uint32, shift uint64) (*Runtime, fakeMemory) {
	rt := &Runtime{Version: Version{3, 12, 1, false}, Offsets: table312.Offsets, Pthread: Pthread{KeyBlock: 784, KeyTable: 1296},
		Address: fakeRuntime}
	m := fakeMemory{fakeRuntime: make([]byte, 4096), fakeSelf: make([]byte, 2368)}
	m.word(fakeRuntime+uint64(rt.Offsets.RuntimeAutoTSS)+shift, 1|uint64(key)<<32)
	block := uint64(fakeSelf + 784)
	if key >= keysPerBlock {
		block = 0x9990000
		m[block] = make([]byte, keysPerBlock*keyBytes)
		m.word(fakeSelf+1296+8*uint64(key/keysPerBlock), block)
	}
	m.word(block+keyBytes*uint64(key%keysPerBlock)+8, fakeState)
	return rt, m
}

var fakeThreads = []thread{{fakeState, fakeSelf}}

func TestTheKeyIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		key   uint32
		shift uint64
	}{
		"in its place": {3, 0}, "of the second level": {77, 0}, "behind larger mutexes, as on arm64": {3, 16},
	} {
		rt, m := fakeKey(c.key, c.shift)
		if err := rt.findKey(memory{m, nil}, fakeThreads); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if want := fakeRuntime + uint64(rt.Offsets.RuntimeAutoTSS) + c.shift; rt.AutoTSS != want || rt.Key != c.key || !rt.Verified {
			t.Errorf("%s: key %d at %#x, verified %v", name, rt.Key, rt.AutoTSS, rt.Verified)
		}
	}
}

func TestAKeyOfMuslIsFound(t *testing.T) {
	for _, key := range []uint32{0, 7, 127} {
		rt, m := fakeKey(key, 0)
		rt.Pthread = Pthread{KeyTable: 128, Plain: true}
		const values = 0x9990000
		m[values] = make([]byte, 8*muslKeys)
		m.word(fakeSelf+128, values)
		m.word(values+8*uint64(key), fakeState)
		if err := rt.findKey(memory{m, nil}, fakeThreads); err != nil || rt.Key != key || !rt.Verified {
			t.Errorf("key %d, found %d, verified %v: %v", key, rt.Key, rt.Verified, err)
		}
	}
}

// The code of Debian's musl 1.2.3, and what is not musl's.
func TestWhereMuslHasAThreadsValuesIsReadFromItsCode(t *testing.T) {
	getspecific := []byte{0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8b, 0x80, 0x80, 0, 0, 0, 0x89, 0xff, 0x48, 0x8b, 0x04, 0xf8, 0xc3}
	short := []byte{0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x89, 0xff, 0x48, 0x8b, 0x40, 0x78, 0x48, 0x8b, 0x04, 0xf8, 0xc3}
	for _, c := range []struct {
		code   []byte
		offset int
	}{{getspecific, 128}, {short, 120}, {getspecific[:12], 0}, {getspecific[9:], 0}, {nil, 0}} {
		if offset := muslOffset(c.code); offset != c.offset {
			t.Errorf("% x: offset %d, want %d", c.code, offset, c.offset)
		}
	}
}

func TestAKeyWhoseAddressIsNotKnownIsFoundByAThreadsValue(t *testing.T) {
	for _, key := range []uint32{0, 31, 32, 500} {
		rt, m := fakeKey(key, 0)
		m.word(fakeRuntime+uint64(rt.Offsets.RuntimeAutoTSS), 0)
		if err := rt.findKey(memory{m, nil}, fakeThreads); err != nil {
			t.Errorf("key %d: %v", key, err)
		} else if rt.AutoTSS != 0 || rt.Key != key || !rt.Verified {
			t.Errorf("key %d: found %d at %#x", key, rt.Key, rt.AutoTSS)
		}
	}
}

func TestAKeyThatNoThreadHasIsNotBelieved(t *testing.T) {
	rt, m := fakeKey(3, 0)
	m.word(fakeSelf+784+keyBytes*3+8, 0x1234)
	var refused *UnsupportedError
	if err := rt.findKey(memory{m, nil}, fakeThreads); !errors.As(err, &refused) || refused.Flavour != FlavourUnknown {
		t.Errorf("%v", err)
	}
	rt, m = fakeKey(3, 0)
	m.word(fakeSelf+784+keyBytes*3+8, 0)
	m.word(fakeRuntime+uint64(rt.Offsets.RuntimeAutoTSS), 0)
	if err := rt.findKey(memory{m, nil}, fakeThreads); !errors.Is(err, ErrNotInitialised) {
		t.Errorf("not initialised: %v", err)
	}
}

func TestAKeyIsTakenUnverifiedWhereNoThreadCanBeRead(t *testing.T) {
	rt, m := fakeKey(3, 0)
	delete(m, fakeSelf)
	if err := rt.findKey(memory{m, nil}, fakeThreads); err != nil || rt.Key != 3 || rt.Verified {
		t.Errorf("key %d, verified %v: %v", rt.Key, rt.Verified, err)
	}
}
