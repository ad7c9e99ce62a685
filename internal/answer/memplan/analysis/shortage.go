package analysis

import (
	"context"
	"fmt"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/source"
	"github.com/ebpfprof/ebpfprof/internal/text/amount"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// Shortage is memory that was not there.
type Shortage struct{ source.Shortage }

// shortages reads when memory ran out, and where.
func (m *Memory) shortages(ctx context.Context, keep func(blocks.Arena) bool) error {
	found, err := m.origin.Shortages(ctx)
	if err != nil {
		return err
	}
	for _, s := range found {
		if !keep(blocks.Arena{Session: s.Session, PID: s.PID, Space: s.Space, Level: s.Level, Device: blocks.Unknown}) {
			continue
		}
		if s.Line, err = m.lineOf(ctx, &s); err != nil {
			return err
		}
		s.LiveBytes = m.liveAt(&s)
		m.OutOfMemory = append(m.OutOfMemory, Shortage{s})
	}
	return nil
}

// lineOf is the place that asked, "" where it is not known.
func (m *Memory) lineOf(ctx context.Context, s *source.Shortage) (string, error) {
	if s.Path == 0 {
		return "", nil
	}
	paths, err := m.origin.Paths(ctx, s.Session, []int64{s.Path})
	if err != nil {
		return "", err
	}
	return paths[s.Path].Line(), nil
}

// liveAt is what was live when memory ran out, of what was recorded.
func (m *Memory) liveAt(s *source.Shortage) *int64 {
	for _, a := range m.Arenas {
		if a.Session != s.Session || a.PID != s.PID || a.Space != s.Space || len(a.Curve) == 0 || a.Curve[0].NS > s.NS ||
			s.Device != nil && a.Device != nil && *s.Device != *a.Device {
			continue
		}
		for _, at := range a.lives.Shortages {
			if at.NS == s.NS {
				return &at.Live
			}
		}
		live := int64(0)
		for _, p := range a.Curve {
			if p.NS <= s.NS {
				live = p.Max
			}
		}
		return &live
	}
	return nil
}

// Sentence says who had no memory left, when and where.
func (s *Shortage) Sentence() string {
	who := fmt.Sprintf("pid %d", s.PID)
	if s.PID == 0 { // a snapshot does not name its process
		who = "the job"
	}
	if s.Command != "" {
		who += fmt.Sprintf(" (%s)", shortened(s.Command))
	}
	if s.Level == event.LevelKernel {
		text := fmt.Sprintf("the kernel killed %s for want of memory, %.1f s after the recording began", who, s.At)
		if s.Line != "" {
			text += fmt.Sprintf("; its last sample was at %s", holders.Short(s.Line))
		}
		return text
	}
	asked := "some"
	if s.AskedBytes != nil {
		asked = amount.Bytes(*s.AskedBytes)
	}
	where := s.Space
	if s.Device != nil {
		where += fmt.Sprintf(" %d", *s.Device)
	}
	text := fmt.Sprintf("%s asked for %s of %s memory and there was no room, %.1f s after the recording began", who, asked, where, s.At)
	if s.Times > 1 {
		earlier := "once"
		if s.Times > 2 {
			earlier = fmt.Sprintf("%d times", s.Times-1)
		}
		text += " and " + earlier + " before"
	}
	if s.Line != "" {
		text += fmt.Sprintf(", at %s", holders.Short(s.Line))
	}
	return text
}

// Details say what was held then, as far as it is known.
func (s *Shortage) Details() (details []string) {
	if s.FreeBytes != nil {
		details = append(details, fmt.Sprintf("%s of the device's memory were free", amount.Bytes(*s.FreeBytes)))
	}
	if s.AllocatedBytes != nil {
		said := fmt.Sprintf("the allocator said that %s were in use", amount.Bytes(*s.AllocatedBytes))
		if s.ReservedBytes != nil {
			said += fmt.Sprintf(" and %s reserved", amount.Bytes(*s.ReservedBytes))
		}
		details = append(details, said)
	}
	if s.LiveBytes != nil {
		details = append(details, fmt.Sprintf("%s were live of what was seen being allocated", amount.Bytes(*s.LiveBytes)))
	}
	if s.Resident == nil && s.Space == "device" {
		return details
	}
	if s.Resident == nil {
		return append(details, "what the process held before is not known")
	}
	held := fmt.Sprintf("the process held %s", amount.Bytes(*s.Resident))
	if s.ResidentBefore != nil && s.BeforeSeconds != nil && *s.BeforeSeconds > 0 {
		held += fmt.Sprintf(", %.1f s before %s", *s.BeforeSeconds, amount.Bytes(*s.ResidentBefore))
	}
	if s.Virtual != nil {
		held += fmt.Sprintf("; its address space had %s", amount.Bytes(*s.Virtual))
	}
	if s.Limit != nil {
		held += fmt.Sprintf("; its control group may have %s", amount.Bytes(*s.Limit))
	}
	return append(details, held)
}

// shortened is the beginning of a command.
func shortened(command string) string {
	const most = 60
	words := strings.Join(strings.Fields(command), " ")
	if runes := []rune(words); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return words
}
