package plan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/site"
)

var (
	errNotOnlyAJump = errors.New("no site: it is more than a jump to a C function, and how it ends is not seen")
	errReplaced     = errors.New("no site: another function's probe tells the same, and more")
)

// replace leaves out the functions of which others tell the same (catalog.Function.Replaces).
func (p *Plan) replace() {
	replaced := map[string]bool{}
	for i := range p.Probes {
		if probe := &p.Probes[i]; probe.Usable() {
			replaced[probe.Function.Replaces] = true
		}
	}
	for i := range p.Probes {
		if probe := &p.Probes[i]; replaced[probe.Symbol] && probe.EntryErr == nil {
			probe.EntryErr = errReplaced
		}
	}
}

// onlyJumps reports whether a function is one jump to another library's, of this name.
func (p *planner) onlyJumps(code site.Function, name string) bool {
	target, ok := onlyJump(p.file.Machine(), code.Code)
	if !ok {
		return false
	}
	found, ok := p.file.PLTTarget(code.Address + uint64(target))
	found, _, _ = strings.Cut(found, "@") // a symbol version
	return ok && found == name
}

// onlyJump is how far a function jumps that does nothing else, from its address on.
func onlyJump(machine elf.Machine, code []byte) (target int64, ok bool) {
	landing, jump, bytesOfJump := []byte{0xf3, 0x0f, 0x1e, 0xfa}, byte(0xe9), 5 // endbr64; jmp rel32
	if machine == elf.MachineARM64 {
		landing, bytesOfJump = []byte{0x5f, 0x24, 0x03, 0xd5}, 4 // bti c; b
	}
	rest := bytes.TrimPrefix(code, landing)
	at := int64(len(code) - len(rest))
	if len(rest) < bytesOfJump {
		return 0, false
	}
	if machine == elf.MachineARM64 {
		word := binary.LittleEndian.Uint32(rest)
		return at + int64(int32(word<<6))>>4, word>>26 == 0b000101
	}
	return at + int64(bytesOfJump) + int64(int32(binary.LittleEndian.Uint32(rest[1:]))), rest[0] == jump
}
