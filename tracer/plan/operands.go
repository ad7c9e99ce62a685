package plan

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
	"github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Where the arguments of a USDT probe are is in its note, in the assembler's words: the bytes of each, negative if it is a
// signed number, and a register, memory behind one, or a constant. What cannot be read in the kernel (floating-point
// registers, sums of two registers, addresses relative to the code) keeps its place and the reason.

// operandStart begins an argument: on arm64 an operand itself has spaces.
var operandStart = regexp.MustCompile(`(?:^| )(-?[0-9]{1,2})(f?)@`)

// operands reads the arguments of a note. names are what the user calls them and their types, a name of "" leaves one out.
func operands(text string, machine elf.Machine, names []spec.Argument) (arguments []spec.Argument, values []spec.Value) {
	starts := operandStart.FindAllStringSubmatchIndex(text, -1)
	for n, at := range starts {
		end := len(text)
		if n+1 < len(starts) {
			end = starts[n+1][0]
		}
		argument := spec.Argument{Name: fmt.Sprintf("arg%d", n+1)}
		size, _ := strconv.Atoi(text[at[2]:at[3]])
		if argument.Bits = uint8(8 * max(size, -size)); size > 0 {
			argument.Kind = spec.Unsigned
		}
		if n < len(names) {
			if names[n].Name == "" {
				continue
			}
			argument.Name, argument.Kind = names[n].Name, names[n].Kind
			argument.Bits = min(argument.Bits, names[n].Bits)
		}
		value := spec.Value{Bits: argument.Bits, Signed: argument.Kind == spec.Signed}
		operand := strings.TrimSpace(text[at[1]:end])
		constant, isConstant, ok := parseOperand(operand, machine, &value)
		switch argument.Value = spec.NoValue; {
		case text[at[4]:at[5]] != "" || !ok || argument.Bits == 0 || argument.Bits > 64:
			argument.Unread = strings.TrimSpace(text[at[2]:end])
		case isConstant:
			argument.Constant = constant
		case len(values) >= spec.MostValues || argument.Kind == spec.String && len(values) >= spec.MostStrings:
			argument.Unread = "one argument too many"
		default:
			argument.Value = int8(len(values))
			values = append(values, value)
		}
		arguments = append(arguments, argument)
	}
	return arguments, values
}

// parseOperand puts the place of a value in, or gives the constant that it is.
func parseOperand(text string, machine elf.Machine, to *spec.Value) (constant int64, isConstant, ok bool) {
	if machine == elf.MachineARM64 {
		return parseARM64(text, to)
	}
	if number, found := strings.CutPrefix(text, "$"); found {
		constant, err := strconv.ParseInt(number, 0, 64)
		return constant, true, err == nil
	}
	if register, found := strings.CutPrefix(text, "%"); found {
		return 0, false, registerAMD64(register, to)
	}
	offset, rest, found := strings.Cut(text, "(%")
	register, closed := strings.CutSuffix(rest, ")")
	if !found || !closed || !registerAMD64(register, to) || to.Shift != 0 {
		return 0, false, false
	}
	return 0, false, memory(offset, to)
}

var operandARM64 = regexp.MustCompile(`^\[(x[0-9]+|sp)(?:, *#?(-?[0-9]+))?\]$`)

func parseARM64(text string, to *spec.Value) (constant int64, isConstant, ok bool) {
	if constant, err := strconv.ParseInt(text, 0, 64); err == nil {
		return constant, true, true
	}
	if m := operandARM64.FindStringSubmatch(text); m != nil {
		return 0, false, registerARM64(m[1], to) && memory(m[2], to)
	}
	return 0, false, registerARM64(text, to)
}

// memory makes the value what lies at an offset behind its register.
func memory(offset string, to *spec.Value) bool {
	if offset == "" {
		offset = "0"
	}
	n, err := strconv.ParseInt(offset, 0, 64)
	if err != nil || n < math.MinInt16 || n > math.MaxInt16 {
		return false
	}
	to.Derefs, to.Offset[0] = 1, int16(n)
	return true
}

// contextAMD64 is where struct pt_regs has a register, in words (arch/x86/include/asm/ptrace.h), by its name without
// prefix or suffix of its size.
var contextAMD64 = map[string]uint8{
	"r15": 0, "r14": 1, "r13": 2, "r12": 3, "bp": 4, "bx": 5, "r11": 6, "r10": 7, "r9": 8, "r8": 9, "ax": 10, "cx": 11, "dx": 12,
	"si": 13, "di": 14, "sp": 19,
}

// registerAMD64 finds a register by any of its names: rax, eax, ax, al, ah; r8, r8d, r8w, r8b.
func registerAMD64(name string, to *spec.Value) bool {
	base := name
	switch {
	case len(name) == 3 && (name[0] == 'r' || name[0] == 'e') && (name[1] < '0' || name[1] > '9'):
		base = name[1:]
	case len(name) > 2 && name[0] == 'r':
		base = strings.TrimRight(name, "dwb")
	case len(name) == 3 && name[2] == 'l': // sil, dil, bpl, spl
		base = name[:2]
	case len(name) == 2 && (name[1] == 'l' || name[1] == 'h') && strings.Contains("abcd", name[:1]):
		base = name[:1] + "x"
		if name[1] == 'h' {
			to.Shift = 8
		}
	}
	index, ok := contextAMD64[base]
	to.Index = index
	return ok
}

// registerARM64 finds x0 to x30, w0 to w30 and sp in struct pt_regs (arch/arm64/include/asm/ptrace.h).
func registerARM64(name string, to *spec.Value) bool {
	if name == "sp" {
		to.Index = 31
		return true
	}
	if len(name) < 2 || name[0] != 'x' && name[0] != 'w' {
		return false
	}
	n, err := strconv.ParseUint(name[1:], 10, 8)
	to.Index = uint8(n)
	return err == nil && n <= 30
}
