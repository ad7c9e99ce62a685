// Package symbolize turns addresses and handles into names. It knows files, not
// processes: it needs neither root nor a kernel.
//
// symbolize/elf reads one file. Names keeps the files that processes run code from, and
// a Space, the address space of one process, names its addresses:
//
//	names := symbolize.NewNames()
//	mappings, err := p.Mappings() // tracer/process
//	space := names.Space(mappings) // opens the files, while the process lives
//	…
//	frame := space.Frame(pc, false)           // where the thread is
//	frame = space.Frame(returnAddress, true)  // whom it returns to
//	if !space.Known(pc) { … space.Update(mappings) }
//
// The kernel's own code has its names from /proc/kallsyms, in KernelNames.
// Naming is for the side that is not in a hurry: the first frame in a file
// costs up to 0.1 s, later ones a map look-up.
//
// A name is never a guess. Only code inside a symbol's size has its name;
// other code is named after the place where its frame description begins
// (IsNameless), and code without one has no name.
package symbolize
