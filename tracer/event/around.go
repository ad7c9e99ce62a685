package event

// around is set in the id of a span that has no call of its own. The ids that the kernel gives
// out have a thread's number from bit 40 on.
const around = 1 << 62

// AroundID is the id of the span that is made around one of a call, with its time.
func AroundID(call int64) int64 { return call | around }

// IsAround reports whether a span was made around one of a call: what counts calls or adds up
// their time has that one.
func (s *Span) IsAround() bool { return s.ID&around != 0 }
