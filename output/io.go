package output

import "github.com/ebpfprof/ebpfprof/tracer/event"

var ioTable = newTable(table[event.IO]{
	Table: Table{
		Name: "io",
		Row:  "what one thread has read or written of one kind, in a second or for a part of one",
		Description: "Every read and write by a system call of a traced process, added up; those that took a millisecond or longer are rows of " +
			"span as well (layer io). A call counts to where it began: a row has calls of one second alone, and, where steps are at least " +
			"2 ms long, of one training step, so that ts_ns says of which. copy_file_range, sendfile and splice are a read and a write; their " +
			"time is the read's. Files that are mapped are read by major faults: rows of operation fault. With --paths each file has rows " +
			"of its own. What is not seen: limitations.md.",
	},
	time: func(r *event.IO) int64 { return r.TSNS },
	columns: []column[event.IO]{
		{Column: Column{"ts_ns", BigInt, "ns", false, 2, "when the first of the calls began, since the Unix epoch"},
			delta: true, ints: func(r *event.IO) (int64, bool) { return r.TSNS, true }},
		{Column: Column{"end_ns", BigInt, "ns", false, 3, "when the last of them ended"},
			delta: true, ints: func(r *event.IO) (int64, bool) { return r.EndNS, true }},
		{Column: Column{"pid", Integer, "", false, 4, "process, in the tracer's pid namespace"},
			ints: func(r *event.IO) (int64, bool) { return integer(r.PID) }},
		{Column: Column{"tid", Integer, "", false, 5, "thread"},
			ints: func(r *event.IO) (int64, bool) { return integer(r.TID) }},
		{Column: Column{"operation", Varchar, "", true, 6, "read, write, sync (fsync, fdatasync), or fault (a major fault: a page of a mapping " +
			"was read from its file, or from swap; counted when it ends); NULL: calls and faults beyond the 15 kinds that a thread can " +
			"have at once"},
			texts: func(r *event.IO) (string, bool) { return unlessEmpty(r.Operation) }},
		{Column: Column{"kind", Varchar, "", true, 7, "what is read or written: file, socket, pipe, device (/dev/null, a terminal, a disk), " +
			"directory, other (eventfd and the like), none (the descriptor was not open), memory (a fault of no file: from swap); NULL also for " +
			"faults before Linux 5.17"},
			texts: func(r *event.IO) (string, bool) { return unlessEmpty(r.Kind) }},
		{Column: Column{"file_system", Varchar, "", true, 8, "type of the file system, as mountinfo and the kernel name it: ext4, overlay, " +
			"tmpfs, nfs4, sockfs"},
			texts: func(r *event.IO) (string, bool) { return unlessEmpty(r.FileSystem) }},
		{Column: Column{"mount", Varchar, "", true, 9, "where the process has it mounted; absent where no directory is"},
			texts: func(r *event.IO) (string, bool) { return unlessEmpty(r.Mount) }},
		{Column: Column{"device", Varchar, "", true, 10, "the file system's device, major:minor: one file system may have several mounts"},
			texts: func(r *event.IO) (string, bool) { return unlessEmpty(r.Device) }},
		{Column: Column{"calls", BigInt, "", false, 11, "system calls, or faults"},
			ints: func(r *event.IO) (int64, bool) { return r.Calls, true }},
		{Column: Column{"failed", BigInt, "", false, 12, "of them returned an error, EAGAIN too"},
			ints: func(r *event.IO) (int64, bool) { return r.Failed, true }},
		{Column: Column{"bytes", BigInt, "bytes", true, 13, "that were read or written; NULL of faults: the kernel reads what lies around the " +
			"page as well"},
			ints: func(r *event.IO) (int64, bool) { return r.Bytes, r.Operation != event.IOFault }},
		{Column: Column{"duration_ns", BigInt, "ns", true, 14, "in these calls, from entry to exit; NULL of faults: when one began is not seen"},
			ints: func(r *event.IO) (int64, bool) { return r.DurationNS, r.Operation != event.IOFault }},
		{Column: Column{"waited_ns", BigInt, "ns", true, 15, "of it the thread was off the CPU, waiting for what it reads or writes; NULL " +
			"where waits are not recorded (--off-cpu-threshold 0)"},
			ints: func(r *event.IO) (int64, bool) { return ofInt64(r.WaitedNS) }},
		{Column: Column{"path", Varchar, "", true, 16, "the file's, where --paths asked for paths: its name when it was first seen, in the " +
			"process's root; without a leading / it is below a mount whose directory is not known, and '…/' stands for directories that " +
			"were left out"},
			texts: func(r *event.IO) (string, bool) { return unlessEmpty(r.Path) }},
	},
})
