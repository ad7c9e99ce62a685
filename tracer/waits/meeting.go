package waits

import "github.com/ebpfprof/ebpfprof/tracer/event"

// A collective ends when its last rank has come. Where all ranks are of one recording,
// there is an edge from the call of that rank to what the others' threads ran.

type meeting struct {
	issues []arrival
	runs   []arrival
}

type arrival struct {
	pid  int32
	span int64
	ns   int64
}

type meetingKey struct {
	communicator, number int64
}

// meetings are the collectives of which not every rank has come yet, the oldest out.
type meetings struct {
	of    map[meetingKey]*meeting
	order []meetingKey
}

// mostMeetings is how many are kept: with ranks of other hosts none is ever complete.
const mostMeetings = 1 << 10

func newMeetings() meetings { return meetings{of: map[meetingKey]*meeting{}} }

func (m *meetings) find(g *group, number int64) (key meetingKey, one *meeting) {
	if g.ID == nil || g.Ranks == nil || *g.Ranks < 2 || *g.Ranks > mostMeetings {
		return key, nil
	}
	key = meetingKey{*g.ID, number}
	if one = m.of[key]; one == nil {
		if len(m.order) >= mostMeetings {
			delete(m.of, m.order[0])
			m.order = m.order[1:]
		}
		one = &meeting{}
		m.of[key], m.order = one, append(m.order, key)
	}
	return key, one
}

func (m *meetings) issued(rows Rows, g *group, number int64, span *event.Span) {
	if key, one := m.find(g, number); one != nil {
		one.issues = append(one.issues, arrival{span.PID, span.ID, span.StartNS})
		m.over(rows, key, one, int(*g.Ranks))
	}
}

func (m *meetings) ran(rows Rows, g *group, number int64, span *event.Span) {
	if key, one := m.find(g, number); one != nil {
		one.runs = append(one.runs, arrival{span.PID, span.ID, span.StartNS})
		m.over(rows, key, one, int(*g.Ranks))
	}
}

// over draws the edges once all ranks are there. Its place in the order stays.
func (m *meetings) over(rows Rows, key meetingKey, one *meeting, ranks int) {
	if len(one.issues) < ranks || len(one.runs) < ranks {
		return
	}
	last := one.issues[0]
	for _, a := range one.issues[1:] {
		if a.ns > last.ns {
			last = a
		}
	}
	for _, a := range one.runs {
		if a.pid != last.pid {
			rows.Flow(event.Flow{TSNS: last.ns, FromSpanID: last.span, ToSpanID: a.span, Kind: FlowCollective, Method: methodNumber})
		}
	}
	one.issues, one.runs = nil, nil
}
