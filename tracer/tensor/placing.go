package tensor

import (
	"strings"

	"github.com/ebpfprof/ebpfprof/symbolize/elf"
)

// placing goes through the arguments of a call from the first on, as the ABI does:
// System V's of x86-64, AAPCS64.
type placing struct {
	machine  elf.Machine
	old      bool // c10::optional, before it was std::optional
	integers int  // registers that are taken
	floats   int
	stack    int // words of the stack that are taken
}

// class is how a type is passed.
type class uint8

const (
	unknown class = iota
	word          // one register, or one word of the stack: numbers, and pointers to what is not copied by bits
	pair          // two, together
	floating
	mixed  // a double and a word behind it
	memory // three words: on x86-64 on the stack, on arm64 behind a pointer
)

func (p *placing) classOf(t string) class {
	if strings.HasSuffix(t, "&") || strings.HasSuffix(t, "*") {
		return word
	}
	inner := ""
	if at := strings.IndexByte(t, '<'); at >= 0 && strings.HasSuffix(t, ">") {
		t, inner = t[:at], t[at+1:len(t)-1]
	}
	switch t {
	case "bool", "long", "int", "signed char", "c10::ScalarType", "c10::MemoryFormat", "c10::Layout", "c10::Device":
		return word
	case "c10::SymInt", "c10::Storage", "at::Generator", "c10::Scalar": // they have destructors
		return word
	case "double":
		return floating
	case "c10::ArrayRef", "c10::basic_string_view", "std::basic_string_view":
		return pair
	case "std::array":
		if strings.HasPrefix(inner, "bool,") {
			return word
		}
	case "c10::OptionalArrayRef": // an optional<ArrayRef>, which c10 kept in two words
		if p.old {
			return pair
		}
		return memory
	case "std::optional", "c10::optional":
		return p.optionalOf(inner)
	}
	return unknown
}

func (p *placing) optionalOf(inner string) class {
	switch inner {
	case "bool", "c10::ScalarType", "c10::MemoryFormat", "c10::Layout", "c10::Device":
		return word
	case "long":
		return pair
	case "double":
		return mixed
	case "at::Generator", "c10::SymInt", "c10::Scalar", "at::Tensor":
		return word
	}
	switch {
	case strings.HasPrefix(inner, "c10::ArrayRef<") && p.old:
		return pair
	case strings.HasPrefix(inner, "c10::ArrayRef<"), strings.HasPrefix(inner, "std::basic_string_view<"), strings.HasPrefix(inner,
		"c10::basic_string_view<"):
		return memory
	}
	return unknown
}

// place says in which word an argument begins, and goes on to the next: registers
// count from 0, the stack from firstStackWord.
func (p *placing) place(t string) (at int, ok bool) {
	arm := p.machine == elf.MachineARM64
	switch c := p.classOf(t); {
	case c == word, c == memory && arm:
		return p.words(1), true
	case c == pair, c == mixed && arm:
		return p.words(2), true
	case c == floating:
		if p.floats < 8 {
			p.floats++
			return 0, true
		}
		return p.onStack(1), true
	case c == mixed:
		if p.floats < 8 && p.integers < p.registers() {
			p.floats++
			return p.words(1), true
		}
		return p.onStack(2), true
	case c == memory:
		return p.onStack(3), true
	}
	return 0, false
}

func (p *placing) registers() int {
	if p.machine == elf.MachineARM64 {
		return 8
	}
	return 6
}

// words takes so many words together: in registers if all of them fit there. On arm64
// no later argument goes into those that were too few.
func (p *placing) words(n int) int {
	if p.integers+n <= p.registers() {
		at := p.integers
		p.integers += n
		return at
	}
	if p.machine == elf.MachineARM64 {
		p.integers = p.registers()
	}
	return p.onStack(n)
}

func (p *placing) onStack(n int) int {
	at := firstStackWord + p.stack
	p.stack += n
	return at
}
