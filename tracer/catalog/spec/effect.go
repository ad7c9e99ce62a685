package spec

// Effect is what a call that succeeded changes in what is known about its
// process; the decoder keeps that (tracer/accel). The fields say which
// handles it is about.
type Effect uint8

const (
	NoEffect Effect = iota
	// NamesKernel: the text names the kernel FieldHandle of module FieldModule.
	NamesKernel
	// LinksKernel: kernel FieldHandle is another handle for kernel FieldKernel.
	LinksKernel
	// LoadsModule: FieldModule is new; what an old module of that handle had is gone.
	LoadsModule
	// UnloadsModule: FieldModule and its kernels are gone.
	UnloadsModule
	// StubHint: the thread's next launch is for the host function FieldHostStub.
	StubHint
	// SetsContext: FieldContext is current on the thread from now on.
	SetsContext
	// PushesContext and PopsContext: likewise, on the thread's stack of contexts.
	PushesContext
	PopsContext
	// CreatesContext: FieldContext belongs to FieldDeviceID, and is current.
	CreatesContext
	// NamesContext: FieldContext belongs to FieldDeviceID; nothing is set.
	NamesContext
	// DestroysContext: FieldContext is gone.
	DestroysContext
	// SetsDevice: FieldDeviceID is current on the thread.
	SetsDevice
	// NamesDevice: the current context's device is FieldDeviceID.
	NamesDevice
	// CreatesStream: FieldStream belongs to what is current.
	CreatesStream
	DestroysStream
	// RecordsEvent: FieldEvent stands behind what FieldStream has so far.
	RecordsEvent
	DestroysEvent
	// WaitsStream, WaitsEvent, WaitsContext, WaitsDevice: what was enqueued there has run.
	WaitsStream
	WaitsEvent
	WaitsContext
	WaitsDevice
	// QueriesStream and QueriesEvent: likewise where the status is 0; it had not
	// run yet where it is another one.
	QueriesStream
	QueriesEvent
	// TellsElapsed: FieldElapsed lies between FieldStartEvent and FieldEvent.
	TellsElapsed
	// StreamWaits: FieldStream goes on when FieldEvent is through.
	StreamWaits
	// BeginsCapture: what FieldStream is given goes into a graph.
	BeginsCapture
	// EndsCapture: FieldStream has FieldGraph of it.
	EndsCapture
	// AddsNode: FieldGraph gets what the call describes, and all that FieldChild has.
	AddsNode
	// RemovesNode: the node FieldHandle is gone from its graph.
	RemovesNode
	// ClonesGraph: FieldGraph is new and has what FieldChild has.
	ClonesGraph
	// InstantiatesGraph: FieldGraphExec is made of FieldGraph.
	InstantiatesGraph
	// UpdatesGraph: FieldGraphExec is FieldGraph from now on.
	UpdatesGraph
	// LaunchesGraph: FieldGraphExec runs on FieldStream.
	LaunchesGraph
	DestroysGraph
	DestroysGraphExec
	// JoinsCommunicator: FieldCommunicator is that of FieldUniqueID, the caller
	// its FieldRank of FieldRanks.
	JoinsCommunicator
	// JoinsAll: the FieldCommunicators of a list are ranks 0, 1, … of FieldRanks.
	JoinsAll
	// TellsCommunicator: FieldCommunicator has FieldRank, or FieldRanks.
	TellsCommunicator
	// SplitsCommunicator: FieldHandle is the part of FieldCommunicator that those
	// ranks have who give the same FieldColor, in the order of FieldKey.
	SplitsCommunicator
	// ShrinksCommunicator: FieldHandle is FieldCommunicator without FieldExcluded.
	ShrinksCommunicator
	// LeavesCommunicator: FieldCommunicator is gone.
	LeavesCommunicator
	// NumbersDevices: the FieldDeviceHandles of a list are the process's devices 0, 1, …
	NumbersDevices
	// OrdersStream: FieldStream is new, on FieldDeviceHandle. Its work runs in the
	// order of the calls where FieldFlags is known and lacks the bit Parameter.
	OrdersStream
	// TellsTime: FieldTime is when the work of FieldEvent was where FieldParameter says.
	TellsTime
	// TellsTicks: the work of FieldEvent ran from FieldTicksFrom to FieldTicksTo.
	TellsTicks
	// TellsTick: a tick of the devices is FieldTickNS long and has FieldTickBits.
	TellsTick
	// SizesKernel: FieldKernel is launched in blocks of this size from now on.
	SizesKernel
	// ExecutesLists: what the streams in FieldList captured runs on FieldStream.
	ExecutesLists
	// DropsCapture: what FieldStream captured is gone, and so is the stream.
	DropsCapture
	// RunsUntilReturn: the device's work lies within the call.
	RunsUntilReturn
	// RunsBeyondReturn: from now on it may not.
	RunsBeyondReturn
	// BeginsGroup and EndsGroup: calls between them are one.
	BeginsGroup
	EndsGroup
	// BeginsCompile: the thread compiles the program of FieldBytes at FieldAddress,
	// which says what the executable will be called.
	BeginsCompile
	// EndsCompile: executable FieldHandle is what the thread compiled.
	EndsCompile
	// NamesExecutable: executable FieldHandle has the name at FieldNamePointer.
	NamesExecutable
	// LinksExecutable: loaded executable FieldHandle is one of executable FieldKernel.
	LinksExecutable
	// ForgetsExecutable: FieldHandle is gone.
	ForgetsExecutable
	// QueuesWork: the collective that the thread issues is FieldWork of FieldCommunicator.
	QueuesWork
	// RunsWork: FieldWork ran from the call's begin to its end.
	RunsWork
	// FinishesWork: FieldWork has just ended.
	FinishesWork
	// AwaitsWork: the thread waited for FieldWork.
	AwaitsWork
	// CopiesWork: FieldCopy is FieldWork from now on, for who looks whether it has ended.
	CopiesWork
	// FailsWork: FieldWork will not end as it should.
	FailsWork
)
