package site

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// objdumpLine is one instruction as objdump prints it.
type objdumpLine struct {
	addr uint64
	size int
	text string
}

// disassemble runs objdump over one range of a file.
func disassemble(tb testing.TB, file string, from, to uint64) []objdumpLine {
	tb.Helper()
	out, err := exec.Command("objdump", "-d", "-w", "-z", "--insn-width=16",
		fmt.Sprintf("--start-address=%#x", from), fmt.Sprintf("--stop-address=%#x", to), file).Output()
	if err != nil {
		tb.Fatalf("objdump: %v", err)
	}
	var lines []objdumpLine
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		f := strings.SplitN(sc.Text(), "\t", 3)
		if len(f) < 3 || !strings.HasSuffix(f[0], ":") {
			continue
		}
		a, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(f[0], ":")), 16, 64)
		if err != nil {
			continue
		}
		lines = append(lines, objdumpLine{a, len(strings.Fields(f[1])), f[2]})
	}
	return lines
}

// TestInstructionBoundariesMatchObjdump compares the lengths of a few
// contiguous megabytes of real code, function by function.
func TestInstructionBoundariesMatchObjdump(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("objdump (binutils) is not installed")
	}
	for _, pattern := range []string{
		"/usr/lib/x86_64-linux-gnu/libc.so.6", debianTorch, wheelTorch,
		"/usr/lib/x86_64-linux-gnu/libOpenCL.so.1", "/usr/lib/x86_64-linux-gnu/libpocl.so.2",
		"/usr/lib/x86_64-linux-gnu/libamdhip64.so.5", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	} {
		t.Run(filepath.Base(pattern), func(t *testing.T) {
			l := openLibrary(t, pattern)
			compareBoundaries(t, l, libraryPath(pattern))
		})
	}
}

func compareBoundaries(t *testing.T, l *library, file string) {
	var syms [][2]uint64
	for _, s := range l.text {
		syms = append(syms, [2]uint64{s.Address, s.Size})
	}
	sort.Slice(syms, func(i, j int) bool { return syms[i][0] < syms[j][0] })
	rng := rand.New(rand.NewPCG(1, uint64(len(syms))))
	functions, instructions, bad := 0, 0, 0
	for window := 0; window < 3; window++ {
		k := rng.IntN(len(syms))
		lo := syms[k][0]
		hi := lo + 160<<10
		at := map[uint64]objdumpLine{}
		for _, d := range disassemble(t, file, lo, hi) {
			at[d.addr] = d
		}
		end := uint64(0)
		for ; k < len(syms) && syms[k][0]+syms[k][1] < hi-64; k++ {
			if syms[k][0] < end {
				continue
			}
			end = syms[k][0] + syms[k][1]
			code := l.CodeAt(syms[k][0], syms[k][1])
			functions++
			for off := 0; off < len(code); {
				addr := syms[k][0] + uint64(off)
				d, ok := at[addr]
				if !ok || strings.Contains(d.text, "(bad)") {
					break // objdump went astray in data
				}
				var in insn
				if !decodeAMD64(code, off, syms[k][0], &in) {
					if bad++; bad < 20 {
						t.Errorf("%#x: not decoded, objdump says %s % x", addr, d.text, code[off:min(off+15, len(code))])
					}
					break
				}
				if err := agree(&in, d); err != nil {
					if bad++; bad < 20 {
						t.Errorf("%#x % x: %v", addr, code[off:off+d.size], err)
					}
					break
				}
				off += int(in.size)
				instructions++
			}
		}
	}
	t.Logf("%d functions, %d instructions agree", functions, instructions)
	if instructions < 1000 {
		t.Errorf("only %d instructions were compared", instructions)
	}
}

// agree compares length, control flow and branch target.
func agree(in *insn, d objdumpLine) error {
	text := d.text
	for _, p := range []string{"bnd ", "notrack ", "data16 ", "rex.W ", "cs ", "ds ", "repz "} {
		text = strings.ReplaceAll(text, p, "")
	}
	f := strings.Fields(text)
	if len(f) == 0 {
		return nil
	}
	m := strings.TrimSuffix(f[0], "q")
	m, _, _ = strings.Cut(m, ",") // jne,pn
	// objdump prints a lone prefix or an x87 wait as its own instruction.
	if d.size == 1 && (strings.HasPrefix(m, "rex") || m == "lock" || m == "fs" || m == "gs") {
		return fmt.Errorf("objdump sees a lone prefix")
	}
	if int(in.size) != d.size {
		return fmt.Errorf("length %d, objdump says %d: %s", in.size, d.size, d.text)
	}
	var want flow
	indirect := len(f) > 1 && strings.HasPrefix(f[1], "*")
	switch {
	case m == "call" && indirect:
		want = flowCallIndirect
	case m == "call":
		want = flowCall
	case m == "jmp" && indirect:
		want = flowJumpIndirect
	case m == "jmp":
		want = flowJump
	case strings.HasPrefix(m, "j"), strings.HasPrefix(m, "loop"), m == "xbegin":
		want = flowCond
	case m == "ret", m == "lret", m == "iret":
		want = flowReturn
	case m == "hlt", m == "ud2", m == "ud1", m == "ud0", m == "int3":
		want = flowStop
	}
	if in.flow != want {
		return fmt.Errorf("flow %d, want %d: %s", in.flow, want, d.text)
	}
	if want == flowCall || want == flowJump || want == flowCond {
		a, err := strconv.ParseUint(strings.TrimPrefix(f[1], "0x"), 16, 64)
		if err != nil || a != in.target {
			return fmt.Errorf("target %#x, objdump says %s", in.target, d.text)
		}
	}
	return nil
}
