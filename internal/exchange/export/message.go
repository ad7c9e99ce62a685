package export

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is a protobuf being built; Perfetto's own messages are in no module
// for Go. The field numbers stand where they are used, from
// protos/perfetto/trace in Perfetto's sources (PyPI perfetto 0.59.1).
type message []byte

func (m *message) reset() { *m = (*m)[:0] }

func (m *message) number(field protowire.Number, v uint64) {
	*m = protowire.AppendTag(*m, field, protowire.VarintType)
	*m = protowire.AppendVarint(*m, v)
}

func (m *message) fixed(field protowire.Number, v uint64) {
	*m = protowire.AppendTag(*m, field, protowire.Fixed64Type)
	*m = protowire.AppendFixed64(*m, v)
}

func (m *message) double(field protowire.Number, v float64) { m.fixed(field, math.Float64bits(v)) }

func (m *message) text(field protowire.Number, v string) {
	*m = protowire.AppendTag(*m, field, protowire.BytesType)
	*m = protowire.AppendString(*m, v)
}

func (m *message) message(field protowire.Number, v message) {
	*m = protowire.AppendTag(*m, field, protowire.BytesType)
	*m = protowire.AppendBytes(*m, v)
}
