package nccl

import . "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"

// Where ncclCommInitRank has its rank and its id on this architecture.
const rankArgument = 2

var uniqueID = idOnStack()

func idOnStack() (id []Value) {
	for i := range uint8(uniqueIDWords) {
		id = append(id, Slot(FieldUniqueID, i))
	}
	return id
}
