package sampler

import (
	"bufio"
	"bytes"
	"errors"
	"io"
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

// findKernelText reads the kernel's symbols, as far as it has to: there are a hundred
// thousand, which the kernel takes a tenth of a second to print. Once in the life of the
// process: they do not change.
var findKernelText = sync.OnceValue(func() (text kernelText) {
	kallsyms, err := os.Open("/proc/kallsyms")
	if err != nil {
		return text
	}
	defer kallsyms.Close()
	found := kernelSymbols(kallsyms, "__irqentry_text_start", "__irqentry_text_end", "asm_exc_int3")
	text.interrupts, text.interruptsEnd = found[0].address, found[1].address
	text.breakpoint, text.breakpointEnd = found[2].address, found[2].next
	return text
})

// symbolPlace is where a symbol is, and the next higher address that has one.
type symbolPlace struct{ address, next uint64 }

// kernelSymbols finds the first of each name in /proc/kallsyms; zeros where there is none.
// It reads no further than the last of them.
func kernelSymbols(kallsyms io.Reader, names ...string) []symbolPlace {
	found := make([]symbolPlace, len(names))
	seen := make([]bool, len(names))
	for lines := bufio.NewScanner(kallsyms); lines.Scan() && !whole(found, seen); {
		digits, rest, _ := bytes.Cut(lines.Bytes(), []byte{' '})
		_, name, _ := bytes.Cut(rest, []byte{' '})
		address := uint64(0)
		for i, wanted := range names {
			follows := seen[i] && found[i].next <= found[i].address
			if follows || !seen[i] && string(name) == wanted {
				if address == 0 {
					address, _ = strconv.ParseUint(string(digits), 16, 64)
				}
				if follows {
					found[i].next = address
				} else {
					found[i], seen[i] = symbolPlace{address, address}, true
				}
			}
		}
	}
	return found
}

// whole reports whether all are found and followed by another.
func whole(found []symbolPlace, seen []bool) bool {
	for i, f := range found {
		if !seen[i] || f.next <= f.address {
			return false
		}
	}
	return true
}
