package accel

import "github.com/ebpfprof/ebpfprof/tracer/catalog/spec"

// commandLists is what Level Zero says in calls of their own: of what size the
// blocks of a kernel are, and which recorded lists a queue runs. A list that is
// recorded is a capture (graphs), each run of it a replay.
type commandLists struct {
	blocks map[uint64][3]int64 // by kernel
}

func newCommandLists() commandLists { return commandLists{blocks: map[uint64][3]int64{}} }

// size gives a launch the blocks that its kernel was set to.
func (l *commandLists) size(c *Call) {
	if len(l.blocks) == 0 || c.f.Name != spec.FromKernel || c.args.Has(spec.FieldBlockX) {
		return
	}
	block, ok := l.blocks[c.args.value[spec.FieldKernel]]
	if !ok {
		return
	}
	d := c.detail()
	d.Block = &block
	if d.Grid != nil {
		d.Work = &[3]int64{d.Grid[0] * block[0], d.Grid[1] * block[1], d.Grid[2] * block[2]}
	}
}

func (l *commandLists) apply(c *Call) {
	switch c.f.Effect {
	case spec.SizesKernel:
		if block := c.args.sizes(spec.FieldBlockX, 3); block != nil {
			l.blocks[c.args.value[spec.FieldKernel]] = *block
		}
	case spec.DropsCapture:
		delete(c.graphs.streams, c.args.value[spec.FieldStream])
	case spec.ExecutesLists:
		for _, list := range c.all(spec.FieldList) {
			c.graphs.launch(c, c.graphs.streams[list])
		}
	}
}

// asksForEffect reports whether the call has its effect: some functions answer
// many questions, and only one of them is of use.
func (c *Call) asksForEffect() bool {
	return c.f.Parameter == 0 || c.f.Effect == spec.OrdersStream || c.args.value[spec.FieldParameter] == c.f.Parameter
}

// all are the values of a list: as many as the call has, if so many were captured.
func (c *Call) all(field spec.Field) (list []uint64) {
	most := uint64(len(c.r.Args))
	if c.args.Has(spec.FieldCount) {
		most = c.args.value[spec.FieldCount]
	}
	for i := range c.f.Values {
		v := &c.f.Values[i]
		if v.Field != field || i >= len(c.r.Args) || c.r.Faults&(1<<i) != 0 || v.AtReturn && !c.r.EndSeen {
			continue
		}
		if uint64(len(list)) == most {
			break
		}
		list = append(list, v.Number(c.r.Args[i]))
	}
	return list
}
