package plan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

var errNoJump = errors.New("no return probe: it is not, as is known of other versions, a jump to a function of C and nothing else")

// jumpsTo reports whether a function is a jump to another one of a library, by its name,
// and nothing else: what a return probe does to it, it does to that.
func jumpsTo(file *elf.File, code site.Function, name string) bool {
	target, ok := onlyJump(code)
	if !ok {
		return false
	}
	called, ok := file.PLTTarget(target)
	called, _, _ = strings.Cut(called, "@")
	return ok && called == name
}

// onlyJump is where a function leads that begins with a direct jump.
func onlyJump(code site.Function) (target uint64, ok bool) {
	at, rest := code.Address, code.Code
	landing, size := []byte{0xf3, 0x0f, 0x1e, 0xfa}, 5 // endbr64; jmp rel32
	if code.Arch == site.ARM64 {
		landing, size = []byte{0x5f, 0x24, 0x03, 0xd5}, 4 // bti c; b
	}
	if bytes.HasPrefix(rest, landing) {
		at, rest = at+uint64(len(landing)), rest[len(landing):]
	}
	if len(rest) < size {
		return 0, false
	}
	if code.Arch == site.ARM64 {
		word := binary.LittleEndian.Uint32(rest)
		return at + uint64(int64(int32(word<<6)>>4)), word>>26 == 0b000101
	}
	return at + uint64(size) + uint64(int64(int32(binary.LittleEndian.Uint32(rest[1:])))), rest[0] == 0xe9
}
