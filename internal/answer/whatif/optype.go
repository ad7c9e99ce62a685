package whatif

import "slices"

// OpType is what an operation of a training step does, by the names of the
// public format.
type OpType string

// The types that the replay knows. A trace's other types are left out of it.
const (
	ForwardCompute         OpType = "forward-compute"
	BackwardCompute        OpType = "backward-compute"
	ForwardSend            OpType = "forward-send"
	ForwardRecv            OpType = "forward-recv"
	BackwardSend           OpType = "backward-send"
	BackwardRecv           OpType = "backward-recv"
	ParamsAllGather        OpType = "params-all-gather"
	GradsReduceScatter     OpType = "grads-reduce-scatter"
	SeparateGradsAllReduce OpType = "separate-grads-all-reduce"
	LayernormAllReduce     OpType = "layernorm-grads-all-reduce"
	EmbeddingAllReduce     OpType = "embedding-grads-all-reduce"
	OptimizerClip          OpType = "optimizer-clip-main-grad"
	Optimizer              OpType = "optimizer"
	GarbageCollection      OpType = "gc"
)

var opTypes = []OpType{
	ForwardCompute, BackwardCompute, ForwardSend, ForwardRecv, BackwardSend, BackwardRecv, ParamsAllGather,
	GradsReduceScatter, SeparateGradsAllReduce, LayernormAllReduce, EmbeddingAllReduce, OptimizerClip, Optimizer,
	GarbageCollection,
}

func (t OpType) known() bool   { return slices.Contains(opTypes, t) }
func (t OpType) compute() bool { return t == ForwardCompute || t == BackwardCompute }
func (t OpType) forward() bool { return t == ForwardCompute || t == ForwardSend || t == ForwardRecv }
func (t OpType) send() bool    { return t == ForwardSend || t == BackwardSend }
func (t OpType) recv() bool    { return t == ForwardRecv || t == BackwardRecv }

// computed is the compute that feeds a send or is fed by a receive.
func (t OpType) computed() OpType {
	if t.forward() {
		return ForwardCompute
	}
	return BackwardCompute
}

// peer is the other end of a send or receive, and which way its stage lies.
func (t OpType) peer() (other OpType, stages int) {
	switch t {
	case ForwardSend:
		return ForwardRecv, 1
	case ForwardRecv:
		return ForwardSend, -1
	case BackwardSend:
		return BackwardRecv, -1
	default:
		return BackwardSend, 1
	}
}

// typical says which average is the ideal of the type: the mean of what
// computes, the median of what communicates, where a few waits are extreme.
func (t OpType) typical() func([]float64) float64 {
	switch t {
	case ForwardCompute, BackwardCompute, GarbageCollection, Optimizer:
		return mean
	}
	return median
}

// reported is the name under which the type's slowdown is reported: the two ends
// of a transfer are one.
func (t OpType) reported() string {
	switch t {
	case ForwardSend, ForwardRecv:
		return "forward-pp-comm"
	case BackwardSend, BackwardRecv:
		return "backward-pp-comm"
	}
	return string(t)
}
