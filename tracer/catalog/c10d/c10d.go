// Package c10d has the table of torch.distributed above its libraries: groups of ranks
// (c10d::ProcessGroupGloo, ProcessGroupNCCL), the collectives that they are asked for, and the
// waits for them. The symbols are those of 1.13.1 (Debian) and 2.15.0 (PyPI).
//
// A method returns an intrusive_ptr<Work>, for which the caller has made room: on x86-64 the first
// argument says where, on arm64 a register that is no argument's.
//
// Which collective of its group one is, all ranks must agree on. Gloo tags its messages with what
// nextTag counts, and a job whose ranks' tags differ does not go on: that is the number here, from
// 0. (getSequenceNumberForGroup of 2.x counts sends and receives too, which only some ranks make;
// that of 1.13 begins anywhere.) With NCCL it is seqCollective_, from 1, as the flight recorder
// writes it.
//
// What NCCL runs ends on the device. ProcessGroupNCCL's watchdog looks whether it has, ten times a
// second, at a copy of each work that it keeps in a list: the copy is made when the work is
// queued, and told of (DesyncDebugger::logWorkEnd) when the work is over, whether anything is set
// in the job or not.
//
// The package is no part of the public API: it may change with any version.
package c10d

import (
	"slices"
	"strconv"

	. "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"
)

// Groups lists the groups of this table, in the order in which they are shown.
func Groups() []Group {
	return []Group{group}
}

const (
	groupOfGloo = "_ZN4c10d16ProcessGroupGloo"
	groupOfNCCL = "_ZN4c10d16ProcessGroupNCCL"

	glooNumber = groupOfGloo + "7nextTagEv"
	ncclNumber = groupOfNCCL + "25getSequenceNumberForGroupEv"
)

var group = Group{
	Name:   "collective",
	Anchor: true,
	Help:   "collectives of torch.distributed: as called, as run by gloo's threads, and the waits for them",
	Tier:   Anchor,
	Functions: slices.Concat(
		[]Function{
			{
				// static void AsyncWork::execute(const c10::intrusive_ptr<AsyncWork>&), which
				// 1.13 and 2.15 both pass as a pointer to the pointer.
				Library: "libtorch_cpu.so", Symbol: groupOfGloo + "9AsyncWork7execute",
				Layer: "collective", Category: "work", Runtime: "gloo", Label: "gloo::AsyncWork::execute",
				Action: Span, End: ExitSites, Effect: RunsWork,
				Values: []Value{Mem(FieldWork, 0, 0)},
			},
			{
				// void enqueue(this, c10::intrusive_ptr<AsyncWork>): within the call that asks for it.
				Library: "libtorch_cpu.so", Symbol: groupOfGloo + "7enqueueE",
				Layer: "collective", Runtime: "gloo", Label: "gloo::enqueue",
				Action: Event, Effect: QueuesWork,
				Values: []Value{Reg(FieldCommunicator, 0), Mem(FieldWork, 1, 0), MemberOf(FieldNumber, 0, glooNumber)},
			},
			// void finishWorkGloo(this), and finishWorkGlooError: what execute ends with. It does not
			// always have an exit site, and the thread that waits is woken before that.
			{
				Library: "libtorch_cpu.so", Symbol: groupOfGloo + "9AsyncWork14finishWorkGloo",
				Layer: "collective", Runtime: "gloo", Label: "gloo::AsyncWork::finishWorkGloo",
				Action: Event, Effect: FinishesWork,
				Values: []Value{Reg(FieldWork, 0)},
			},
			{
				Library: "libtorch_cpu.so", Symbol: groupOfGloo + "9AsyncWork19finishWorkGlooError",
				Layer: "collective", Runtime: "gloo", Label: "gloo::AsyncWork::finishWorkGlooError",
				Action: Event, Effect: FinishesWork,
				Values: []Value{Reg(FieldWork, 0)},
			},
			// Their constructors: SendWork(this, at::Tensor&, …).
			endpoint("8SendWorkC"), endpoint("8RecvWorkC"),
			waits("libtorch_cpu.so", "gloo", groupOfGloo+"8SendWork4waitE", "SendWork::wait"),
			waits("libtorch_cpu.so", "gloo", groupOfGloo+"8RecvWork4waitE", "RecvWork::wait"),
			waits("libtorch_cpu.so", "gloo", "_ZN4c10d4Work4waitE", "Work::wait"),
			waits("libtorch_cuda.so", "nccl", groupOfNCCL+"8WorkNCCL4waitE", "WorkNCCL::wait"),
			{
				// void workEnqueue(this, c10::intrusive_ptr<WorkNCCL>)
				Library: "libtorch_cuda.so", Symbol: groupOfNCCL + "11workEnqueueE",
				Layer: "collective", Runtime: "nccl", Label: "nccl::workEnqueue",
				Action: Event, Effect: QueuesWork,
				Values: []Value{Reg(FieldCommunicator, 0), Mem(FieldWork, 1, 0), MemberOf(FieldNumber, 0, ncclNumber)},
			},
			{
				// WorkNCCL(this, const WorkNCCL&)
				Library: "libtorch_cuda.so", Symbol: groupOfNCCL + "8WorkNCCLC1ERKS1_",
				Layer: "collective", Runtime: "nccl", Label: "WorkNCCL::WorkNCCL",
				Action: Event, Effect: CopiesWork,
				Values: []Value{Reg(FieldCopy, 0), Reg(FieldWork, 1)},
			},
			{
				// void logWorkEnd(this, WorkNCCL&), on the watchdog's thread
				Library: "libtorch_cuda.so", Symbol: groupOfNCCL + "14DesyncDebugger10logWorkEndE",
				Layer: "collective", Runtime: "nccl", Label: "nccl::DesyncDebugger::logWorkEnd",
				Action: Event, Effect: FinishesWork,
				Values: []Value{Reg(FieldWork, 1)},
			},
			// setException(this, std::exception_ptr): its time has run out (what NCCL itself reports
			// does not pass it). handleException(this, mode): it has failed, for whatever reason;
			// the watchdog calls it after it has waited for dumps, up to a minute.
			failure("12setExceptionE", "WorkNCCL::setException"), failure("15handleExceptionE", "WorkNCCL::handleException"),
		},
		ofGroup(gloo, 1, "allreduce", "allreduce_coalesced", "allreduce_sparse", "reduce", "reduce_scatter",
			"reduce_scatter_single", "reduce_scatter_single_coalesced"),
		ofGroup(gloo, 2, "allgather", "_allgather_base", "allgather_coalesced", "all_gather_single", "all_gather_single_coalesced",
			"alltoall", "alltoall_base", "all_to_all_single"),
		ofGroup(gloo, 0, "barrier", "monitoredBarrier"),
		withRoot(ofGroup(gloo, 1, "broadcast"), 2),
		withRoot(ofGroup(gloo, 1, "scatter"), 3),
		withRoot(ofGroup(gloo, 2, "gather"), 3),
		withPeer(ofGroup(gloo, 1, "send", "recv")),
		unnumbered(ofGroup(gloo, 1, "recvAnysource")),
		// In between, PyTorch had these, by the requests that made them.
		of("2.2 (#112144)", ofGroup(gloo, 1, "_reduce_scatter_base")),
		of("2.3 (#118910, #118911)", slices.Concat(ofGroup(gloo, 2, "allgather_into_tensor_coalesced"),
			ofGroup(gloo, 1, "reduce_scatter_tensor_coalesced"))),

		ofGroup(nccl, 1, "allreduce", "allreduce_coalesced", "allreduce_sparse", "reduce", "reduce_scatter",
			"reduce_scatter_single", "reduce_scatter_single_coalesced"),
		ofGroup(nccl, 2, "allgather", "all_gather_single", "all_gather_single_coalesced", "alltoall", "all_to_all_single"),
		ofGroup(nccl, 0, "barrier"),
		withRoot(ofGroup(nccl, 1, "broadcast"), 2),
		withRoot(ofGroup(nccl, 1, "scatter"), 3),
		withRoot(slices.Concat(ofGroup(nccl, 2, "gather"), ofGroup(nccl, 2, "gather_single")), 3),
		withPeer(ofGroup(nccl, 1, "send", "recv")),
		// What they were called before they were called …_single.
		of("2.6; 2.15 has the names above", slices.Concat(ofGroup(nccl, 2, "_allgather_base", "allgather_into_tensor_coalesced", "alltoall_base"),
			ofGroup(nccl, 1, "_reduce_scatter_base", "reduce_scatter_tensor_coalesced"))),
	),
}

// library is a kind of group: its class, the library that has it, what counts its collectives.
type library struct{ runtime, file, class, number string }

var (
	gloo = library{"gloo", "libtorch_cpu.so", groupOfGloo, glooNumber}
	nccl = library{"nccl", "libtorch_cuda.so", groupOfNCCL, ncclNumber}
)

// ofGroup makes the methods of a group with which collectives are asked for.
func ofGroup(l library, share uint8, methods ...string) []Function {
	functions := make([]Function, 0, len(methods))
	for _, m := range methods {
		functions = append(functions, Function{
			Library: l.file, Symbol: l.class + mangled(m) + "E",
			Layer: "collective", Category: "issue", Runtime: l.runtime, Label: l.runtime + "::" + m,
			Action: Span, End: ExitSites, Share: share,
			Values: []Value{Reg(FieldCommunicator, hiddenResult), MemberOf(FieldNumber, hiddenResult, l.number)},
		})
	}
	return functions
}

// withRoot adds the root of a collective: the first member of its options, a 32-bit
// number in 1.13 and one of 64 since. They are parameter n, this being 0.
func withRoot(functions []Function, n uint8) []Function {
	return with(functions, Mem32(FieldRoot, hiddenResult+n, 0))
}

// withPeer: send(tensors, rank, tag) and recv are no collectives, and have no number.
func withPeer(functions []Function) []Function {
	return with(unnumbered(functions), Int32(FieldPeer, hiddenResult+2))
}

func unnumbered(functions []Function) []Function {
	for i := range functions {
		functions[i].Values = functions[i].Values[:1:1]
	}
	return functions
}

func with(functions []Function, v Value) []Function {
	for i := range functions {
		functions[i].Values = append(functions[i].Values, v)
	}
	return functions
}

func endpoint(class string) Function {
	return Function{
		Library: "libtorch_cpu.so", Symbol: groupOfGloo + class,
		Layer: "collective", Runtime: "gloo", Label: "gloo::" + class[1:len(class)-1],
		Action: Event, Effect: QueuesWork,
		Values: []Value{Reg(FieldWork, 0)},
	}
}

// waits is bool wait(this, std::chrono::milliseconds).
func waits(file, runtime, symbol, label string) Function {
	return Function{
		Library: file, Symbol: symbol,
		Layer: "collective", Category: "wait", Runtime: runtime, Label: label,
		Action: Span, End: ExitSites, Effect: AwaitsWork,
		Values: []Value{Reg(FieldWork, 0)},
	}
}

// failure is a call by which a work of NCCL fails.
func failure(method, label string) Function {
	return Function{
		Library: "libtorch_cuda.so", Symbol: groupOfNCCL + "8WorkNCCL" + method,
		Layer: "collective", Category: "communicator", Runtime: "nccl", Label: label,
		Action: Span, End: ExitSites, Effect: FailsWork,
		Values: []Value{Reg(FieldWork, 0)},
	}
}

// of marks functions with the version that has them, where the tests trace none
// that does.
func of(version string, functions []Function) []Function {
	for i := range functions {
		functions[i].Since = version
	}
	return functions
}

// mangled is a name as it stands in an Itanium-mangled symbol.
func mangled(name string) string { return strconv.Itoa(len(name)) + name }
