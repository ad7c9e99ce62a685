// Package snapshot reads and writes PyTorch's memory snapshots
// (torch.cuda.memory._snapshot, _dump_snapshot): pickles and JSON. It owns their
// form; what the events in them mean is package blocks'.
package snapshot

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/blocks"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/holders"
	"github.com/ebpfprof/ebpfprof/internal/exchange/pickle"
)

// ErrFormat is returned for a file that is no memory snapshot.
var ErrFormat = errors.New("not a memory snapshot of PyTorch")

// Snapshot is what a file holds, as far as it says what memory did.
type Snapshot struct {
	Events  []blocks.Event
	Arenas  []blocks.Arena // one a device
	Paths   map[int64]holders.Path
	Ignored map[string]int64 // events of other kinds, by action
	// Before is how many live blocks of the segments were allocated before the
	// trace began: they are events at its beginning.
	Before   int64
	Reserved map[int32]int64 // total of the segments, by device
	// Shortages are the events of memory that ran out.
	Shortages []Shortage
	Cut       bool // the file ends early
}

// Shortage is an allocation that found no room.
type Shortage struct {
	NS          int64
	Device      int32
	Asked, Free int64 // Free is what the device had left, blocks.Unknown if the snapshot lacks it
	Path        int64
}

// CutWarning is what a snapshot that ends early lacks.
const CutWarning = "the file ends early, was it cut off? What is there counts; later events, or the devices' segments, are missing"

// mostEvents is far more than PyTorch keeps. A small pickle can name one list of
// events many times.
const (
	mostEvents  = 1 << 25
	mostDevices = 1024
)

// Read reads a snapshot, pickle or JSON, also in gzip.
func Read(r io.Reader) (*Snapshot, error) {
	in, err := unpacked(bufio.NewReaderSize(r, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	head, err := in.Peek(headBytes)
	switch {
	case len(head) == 0 && err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: its compressed data are damaged or were cut off: copy it again: %w", ErrFormat, err)
	case len(head) == 0:
		return nil, fmt.Errorf("%w: the file is empty", ErrFormat)
	}
	var root any
	cut := false
	switch what := otherFile(string(head)); {
	case what != "":
		return nil, fmt.Errorf("%w: %s", ErrFormat, what)
	case isPickle(head):
		root, cut, err = pickle.ReadCut(in, pickle.DefaultLimits)
	default:
		root, err = readJSON(io.LimitReader(in, mostJSON))
	}
	if err != nil {
		return nil, err
	}
	top, is := root.(*pickle.Dict)
	if list, bare := root.(*pickle.List); bare && len(list.Items) > 0 { // torch.cuda.memory_snapshot() has segments alone
		top, is = &pickle.Dict{Keys: []any{"segments"}, Values: []any{list}}, true
	}
	if !is || top.Get("segments") == nil && top.Get("device_traces") == nil {
		return nil, fmt.Errorf("%w: it has neither segments nor device_traces", ErrFormat)
	}
	b := &builder{s: &Snapshot{Paths: map[int64]holders.Path{}, Ignored: map[string]int64{}, Reserved: map[int32]int64{}, Cut: cut},
		paths: map[*pickle.List]int64{}}
	if err := b.build(top); err != nil {
		return nil, err
	}
	return b.s, nil
}

// readJSON makes the values that a pickle would have.
func readJSON(r io.Reader) (any, error) {
	decoder := json.NewDecoder(r)
	decoder.UseNumber()
	v, err := jsonValue(decoder, pickle.NewRoom(), 0)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: it ends early, was it cut off? Copy it again", ErrFormat)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return v, nil
}

// mostJSON bounds the text of a snapshot, which gzip may hide.
const mostJSON = 8 << 30

func jsonValue(d *json.Decoder, room *pickle.Room, depth int) (any, error) {
	const deepest = 1000
	if depth > deepest {
		return nil, errors.New("it is nested too deeply")
	}
	if err := room.Step(); err != nil {
		return nil, err
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		if n, err := token.Int64(); err == nil {
			return n, nil
		}
		f, err := token.Float64()
		return f, err
	case json.Delim:
		if token == '[' {
			l := &pickle.List{}
			for d.More() {
				v, err := jsonValue(d, room, depth+1)
				if err != nil {
					return nil, err
				}
				l.Items = append(l.Items, v)
			}
			_, err := d.Token()
			return l, err
		}
		m := &pickle.Dict{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := jsonValue(d, room, depth+1)
			if err != nil {
				return nil, err
			}
			m.Keys, m.Values = append(m.Keys, key), append(m.Values, v)
		}
		_, err := d.Token()
		return m, err
	}
	return token, nil
}

// builder makes events of a snapshot's values.
type builder struct {
	s     *Snapshot
	paths map[*pickle.List]int64
	work  int // entries and keys that were looked at
}

// mostWork bounds them: PyTorch's entries have a dozen keys each. A small pickle can name one
// dictionary of many keys any number of times.
const (
	mostWork = 16 * mostEvents
	mostKeys = 256 // of one entry
)

// look counts another look at a dictionary.
func (b *builder) look(d *pickle.Dict) error {
	if len(d.Keys) > mostKeys {
		return fmt.Errorf("an entry of %d keys: %w", len(d.Keys), pickle.ErrTooLarge)
	}
	if b.work += 1 + len(d.Keys); b.work > mostWork {
		return fmt.Errorf("more than %d keys in entries: %w", mostWork, pickle.ErrTooLarge)
	}
	return nil
}

func (b *builder) build(top *pickle.Dict) error {
	live := map[int32]map[int64]bool{} // addresses that the trace leaves live, by device
	traces := listOf(top.Get("device_traces"))
	if len(traces) > mostDevices {
		return fmt.Errorf("traces of %d devices: %w", len(traces), pickle.ErrTooLarge)
	}
	for device, trace := range traces {
		addresses := map[int64]bool{}
		live[int32(device)] = addresses
		for n, item := range listOf(trace) {
			entry, is := item.(*pickle.Dict)
			if !is {
				return fmt.Errorf("%w: event %d of device %d is no dictionary", ErrFormat, n, device)
			}
			if err := b.event(int32(device), entry, addresses); err != nil {
				return fmt.Errorf("event %d of device %d: %w", n, device, err)
			}
		}
	}
	return b.segments(listOf(top.Get("segments")), live)
}

// event adds one entry of a trace.
func (b *builder) event(device int32, entry *pickle.Dict, addresses map[int64]bool) error {
	if err := b.look(entry); err != nil {
		return err
	}
	e := blocks.Event{Bytes: blocks.Unknown, Allocated: blocks.Unknown, Reserved: blocks.Unknown, Duration: blocks.Unknown, Weight: 1}
	var action string
	var frames *pickle.List
	free := int64(blocks.Unknown)
	for i, k := range entry.Keys {
		switch k {
		case "action":
			action, _ = entry.Values[i].(string)
		case "addr":
			e.Address = numberOf(entry.Values[i])
		case "size":
			e.Bytes = numberOf(entry.Values[i])
		case "device_free":
			free = numberOf(entry.Values[i])
		case "time_us":
			e.TSNS = numberOf(entry.Values[i]) * 1000
		case "frames":
			frames, _ = entry.Values[i].(*pickle.List)
		}
	}
	switch action {
	case "alloc":
		e.Action = blocks.Alloc
		addresses[e.Address] = true
	case "free_completed":
		e.Action = blocks.Free
		delete(addresses, e.Address)
	case "oom":
		e.Action = blocks.OutOfMemory
	case "":
		if b.s.Cut {
			return nil
		}
		return fmt.Errorf("%w: it has no action", ErrFormat)
	default:
		b.s.Ignored[action]++
		return nil
	}
	if e.Bytes < 0 && e.Action == blocks.Alloc {
		return fmt.Errorf("%w: its size is %d", ErrFormat, e.Bytes)
	}
	if len(b.s.Events) == mostEvents {
		return fmt.Errorf("more than %d events: %w", mostEvents, pickle.ErrTooLarge)
	}
	e.Arena, e.Path = b.arena(device), b.path(frames)
	if e.Action == blocks.OutOfMemory {
		b.s.Shortages = append(b.s.Shortages, Shortage{e.TSNS, device, e.Bytes, free, e.Path})
	}
	b.s.Events = append(b.s.Events, e)
	return nil
}

func (b *builder) arena(device int32) int32 {
	for i, a := range b.s.Arenas {
		if a.Device == device {
			return int32(i)
		}
	}
	b.s.Arenas = append(b.s.Arenas, blocks.Arena{Space: "device", Level: "allocator", Device: device})
	return int32(len(b.s.Arenas) - 1)
}

// segments adds the blocks that were live before the trace began.
func (b *builder) segments(segments []any, live map[int32]map[int64]bool) error {
	first := int64(0)
	if len(b.s.Events) > 0 {
		first = b.s.Events[0].TSNS
		for _, e := range b.s.Events {
			first = min(first, e.TSNS)
		}
	}
	var before []blocks.Event
	for n, item := range segments {
		segment, is := item.(*pickle.Dict)
		if !is {
			return fmt.Errorf("%w: segment %d is no dictionary", ErrFormat, n)
		}
		if err := b.look(segment); err != nil {
			return err
		}
		device := int32(numberOf(segment.Get("device")))
		b.s.Reserved[device] += numberOf(segment.Get("total_size"))
		address := numberOf(segment.Get("address"))
		for _, item := range listOf(segment.Get("blocks")) {
			block, is := item.(*pickle.Dict)
			if !is {
				return fmt.Errorf("%w: a block of segment %d is no dictionary", ErrFormat, n)
			}
			if err := b.look(block); err != nil {
				return err
			}
			if len(before) == mostEvents {
				return fmt.Errorf("more than %d blocks: %w", mostEvents, pickle.ErrTooLarge)
			}
			size := numberOf(block.Get("size"))
			if at := block.Get("address"); at != nil {
				address = numberOf(at)
			}
			state, _ := block.Get("state").(string)
			if strings.HasPrefix(state, "active") && !live[device][address] {
				frames, _ := block.Get("frames").(*pickle.List)
				before = append(before, blocks.Event{TSNS: first, Address: address, Bytes: size, Allocated: blocks.Unknown,
					Reserved: blocks.Unknown, Duration: blocks.Unknown, Path: b.path(frames), Weight: 1, Arena: b.arena(device)})
			}
			address += size
		}
	}
	b.s.Before = int64(len(before))
	b.s.Events = append(before, b.s.Events...)
	return nil
}

// path keeps a list of frames and returns its number; lists that the pickle
// shares are looked at once.
func (b *builder) path(frames *pickle.List) int64 {
	if frames == nil || len(frames.Items) == 0 {
		return 0
	}
	if id, is := b.paths[frames]; is {
		return id
	}
	h := fnv.New64a()
	var p holders.Path
	for _, item := range frames.Items {
		f, is := item.(*pickle.Dict)
		if !is {
			continue
		}
		file, _ := f.Get("filename").(string)
		name, _ := f.Get("name").(string)
		frame := holders.Frame{Kind: "native", Function: name, File: file, Line: numberOf(f.Get("line"))}
		if strings.HasSuffix(file, ".py") || strings.HasPrefix(file, "<") {
			frame.Kind = "python"
		}
		if file == "??" {
			frame.File = ""
		}
		fmt.Fprintf(h, "%s\x00%s\x00%d\x00", frame.File, frame.Function, frame.Line)
		p = append(p, frame)
	}
	id := int64(h.Sum64() >> 1)
	b.paths[frames], b.s.Paths[id] = id, p
	return id
}

func listOf(v any) []any {
	switch v := v.(type) {
	case *pickle.List:
		return v.Items
	case pickle.Tuple:
		return v
	}
	return nil
}

func numberOf(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case bool:
		if v {
			return 1
		}
	}
	return 0
}
