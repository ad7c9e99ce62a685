package site

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/arm64/arm64asm"
)

// arm64Flow is how control leaves an instruction according to arm64asm.
func arm64Flow(i arm64asm.Inst) flow {
	switch i.Op {
	case arm64asm.B:
		if _, ok := i.Args[0].(arm64asm.Cond); ok {
			return flowCond
		}
		return flowJump
	case arm64asm.CBZ, arm64asm.CBNZ, arm64asm.TBZ, arm64asm.TBNZ:
		return flowCond
	case arm64asm.BL:
		return flowCall
	case arm64asm.BLR:
		return flowCallIndirect
	case arm64asm.BR:
		return flowJumpIndirect
	case arm64asm.RET:
		return flowReturn
	case arm64asm.BRK, arm64asm.HLT, arm64asm.ERET, arm64asm.DRPS, arm64asm.HVC, arm64asm.SMC,
		arm64asm.DCPS1, arm64asm.DCPS2, arm64asm.DCPS3:
		return flowStop
	}
	return flowNext
}

// TestARM64DecodingMatchesArm64asm compares control flow, branch targets and
// written registers of random instruction words.
func TestARM64DecodingMatchesArm64asm(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var b [4]byte
	compared, bad := 0, 0
	for range 2_000_000 {
		w := rng.Uint32()
		if rng.IntN(4) == 0 { // branches and system instructions, which are rare
			w = w&0x03ffffff | [...]uint32{0x14000000, 0x94000000, 0x54000000, 0xd4000000, 0xd6000000, 0xb4000000, 0x34000000}[rng.IntN(7)]
		}
		binary.LittleEndian.PutUint32(b[:], w)
		x, err := arm64asm.Decode(b[:])
		if err != nil {
			continue
		}
		var in insn
		if !decodeARM64(b[:], 0, testOrigin, &in) {
			t.Fatalf("%08x: not decoded, arm64asm says %v", w, x)
		}
		compared++
		wrong := in.flow != arm64Flow(x)
		for _, a := range x.Args {
			if rel, ok := a.(arm64asm.PCRel); ok && in.flow != flowNext && in.target != testOrigin+uint64(int64(rel)) {
				wrong = true
			}
		}
		if r, ok := arm64Destination(x); ok && in.writes>>r&1 == 0 {
			wrong = true
		}
		if wrong {
			if bad++; bad < 20 {
				t.Errorf("%08x: %v decoded as %+v", w, x, in)
			}
		}
	}
	if compared < 100_000 {
		t.Errorf("only %d words were compared", compared)
	}
}

// arm64Destination returns the general register an instruction's first operand
// names, unless the operand is read only.
func arm64Destination(x arm64asm.Inst) (int, bool) {
	name := x.Op.String()
	for _, reads := range []string{"ST", "C", "TST", "TB", "B", "RET", "PRFM", "MSR", "SYS", "IC", "DC", "AT", "TLBI", "HINT"} {
		if strings.HasPrefix(name, reads) && name != "CLS" && name != "CLZ" && !strings.HasPrefix(name, "BF") && name != "BIC" && name != "BICS" {
			return 0, false
		}
	}
	r, ok := x.Args[0].(arm64asm.Reg)
	if !ok {
		return 0, false
	}
	switch {
	case r >= arm64asm.W0 && r <= arm64asm.W30:
		return int(r - arm64asm.W0), true
	case r >= arm64asm.X0 && r <= arm64asm.X30:
		return int(r - arm64asm.X0), true
	}
	return 0, false
}
