package sampler

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"sync"

	"github.com/cilium/ebpf"
)

// setKernelText tells the programs where the kernel's entries of interrupts and
// breakpoints are. Where that is hidden, no wait has a waker, and samples in the
// handling of a probe lose their callers.
func setKernelText(spec *ebpf.CollectionSpec) error {
	text := findKernelText()
	set := func(variable string, address uint64) error { return spec.Variables[variable].Set(address) }
	return errors.Join(
		set("interrupt_text_start", text.interrupts), set("interrupt_text_end", text.interruptsEnd),
		set("breakpoint_text_start", text.breakpoint), set("breakpoint_text_end", text.breakpointEnd))
}

// FindKernelTextBeside begins to look for it, for a sampler that is loaded soon.
func FindKernelTextBeside() { go findKernelText() }

type kernelText struct{ interrupts, interruptsEnd, breakpoint, breakpointEnd uint64 }

// findKernelText reads the kernel's symbols, which it takes a tenth of a second to
// print, once in the life of the process: they do not change.
var findKernelText = sync.OnceValue(func() (text kernelText) {
	kallsyms, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		return text
	}
	text.interrupts, _ = kernelSymbol(kallsyms, "__irqentry_text_start")
	text.interruptsEnd, _ = kernelSymbol(kallsyms, "__irqentry_text_end")
	text.breakpoint, text.breakpointEnd = kernelSymbol(kallsyms, "asm_exc_int3")
	return text
})

// kernelSymbol finds a symbol and the next higher address that has one; zeros
// where there is none.
func kernelSymbol(kallsyms []byte, name string) (address, next uint64) {
	at := bytes.Index(kallsyms, []byte(" "+name+"\n"))
	if at < 0 {
		return 0, 0
	}
	line := func(start int) (uint64, int) {
		end := bytes.IndexByte(kallsyms[start:], '\n')
		if end < 0 {
			return 0, len(kallsyms)
		}
		digits, _, _ := bytes.Cut(kallsyms[start:start+end], []byte{' '})
		value, _ := strconv.ParseUint(string(digits), 16, 64)
		return value, start + end + 1
	}
	address, following := line(bytes.LastIndexByte(kallsyms[:at], '\n') + 1)
	for next = address; next == address && following < len(kallsyms); {
		next, following = line(following)
	}
	return address, next
}
