package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// fields of an event, as they stand in the file.
type fields struct {
	ph                                     byte
	cat, name, pid, tid, ts, dur, id, args []byte
}

func (p *kinetoPass) event(object []byte) error {
	switch {
	case object[0] == '[':
		return fmt.Errorf("%w: %s", ErrFormat, memoryTimeline)
	case len(bytes.Trim(object, "\x00")) == 0: // the end of a file whose writer was killed
		return errEnd
	}
	var f fields
	at := invalidAt(object, func(key, value []byte) {
		switch string(key) {
		case "ph":
			if len(value) == 3 {
				f.ph = value[1]
			}
		case "cat":
			f.cat = value
		case "name":
			f.name = value
		case "pid":
			f.pid = value
		case "tid":
			f.tid = value
		case "ts":
			f.ts = value
		case "dur":
			f.dur = value
		case "id":
			f.id = value
		case "args":
			f.args = value
		}
	})
	if at >= 0 {
		return &syntaxError{^int64(at), fmt.Sprintf("event %d", p.events)}
	}
	switch f.ph {
	case 'X':
		return p.span(&f)
	case 's', 'f', 't':
		if p.brief && (string(f.cat) == `"fwdbwd"` || launchArrow(f.cat)) {
			return p.flow(&f)
		}
	case 'i', 'I':
		if string(f.name) == `"[memory]"` {
			return p.memory(&f)
		}
	case 'M':
		if p.brief {
			p.metadata(&f)
		}
	case 'C', 'c', 'v', 'P', 'R':
	case 'B', 'E':
		return p.paired(&f)
	case 0:
		if len(object) > len("{  }") { // JAX ends its lists with an event of nothing
			p.leave("without ph", 1)
		}
	default:
		p.leave("ph "+strings.ToValidUTF8(string(f.ph), "?"), 1)
	}
	return nil
}

// number reads pid, tid or an id: some versions write them as text, and some
// write words ("stream 7").
func (p *kinetoPass) number(v []byte) int64 {
	t := strings.Trim(string(v), `"`)
	if n, err := strconv.ParseInt(t, 10, 64); err == nil {
		return n
	}
	if i := strings.LastIndexByte(t, ' '); i >= 0 {
		if n, err := strconv.ParseInt(t[i+1:], 10, 64); err == nil {
			return n
		}
	}
	if p.words == nil {
		p.words = map[string]int32{}
	}
	if f, err := strconv.ParseFloat(t, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	return int64(p.word(t))
}

// word is a number in place of a word.
func (p *kinetoPass) word(t string) int32 {
	if p.words == nil {
		p.words = map[string]int32{}
	}
	id := p.words[t]
	if id == 0 {
		id = int32(1<<30 + len(p.words))
		p.words[t] = id
		if p.names == nil {
			p.names = map[int32]string{}
		}
	}
	return id
}

// small is the number of a process or thread; one that has no room in 32 bits gets another.
func (p *kinetoPass) small(v []byte) int32 {
	n := p.number(v)
	if n != int64(int32(n)) {
		return p.word(strconv.FormatInt(n, 10))
	}
	return int32(n)
}

// process is the number of a process, with its name where the file has a word in place of a number.
func (p *kinetoPass) process(v []byte) int32 {
	id := p.small(v)
	if id >= 1<<30 && p.names[id] == "" {
		p.names[id] = p.kept(v)
	}
	return id
}

// micros reads a time in microseconds exactly, which a float64 cannot; false
// where it is no number.
func micros(v []byte) (ns int64, ok bool) {
	if len(v) > 1 && v[0] == '"' {
		v = v[1 : len(v)-1]
	}
	t := v
	negative := len(t) > 0 && t[0] == '-'
	if negative {
		t = t[1:]
	}
	digits, places, dot := 0, 0, false
	for i, c := range t {
		switch {
		case c >= '0' && c <= '9':
			if dot {
				if places == 3 {
					continue
				}
				places++
			}
			if ns > (1<<62)/10 {
				return 0, false
			}
			ns = ns*10 + int64(c-'0')
			digits++
		case c == '.' && !dot:
			dot = true
		case (c == 'e' || c == 'E') && i > 0:
			f, err := strconv.ParseFloat(string(v), 64)
			if err != nil || math.Abs(f) > (1<<62)/1000 {
				return 0, false
			}
			return int64(f * 1000), true
		default:
			return 0, false
		}
	}
	for ; places < 3; places++ {
		if ns > (1<<62)/10 {
			return 0, false
		}
		ns *= 10
	}
	if negative {
		ns = -ns
	}
	return ns, digits > 0
}

// offset is what times are counted from. It may stand at the end of the file,
// so the first pass goes without.
func (p *kinetoPass) offset() int64 {
	if p.brief {
		return 0
	}
	return p.base
}

func (p *kinetoPass) metadata(f *fields) {
	var args struct {
		Name   string `json:"name"`
		Labels string `json:"labels"`
	}
	if f.args == nil || json.Unmarshal(f.args, &args) != nil || args.Name == "" && args.Labels == "" {
		return
	}
	pid, tid := p.small(f.pid), p.small(f.tid)
	p.tracks.forget()
	switch string(f.name) {
	case `"process_name"`:
		if p.names == nil {
			p.names = map[int32]string{}
		}
		p.late = p.late || p.tracks.plain && p.names[pid] != args.Name
		p.names[pid] = args.Name
	case `"thread_name"`:
		if p.threads == nil {
			p.threads = map[[2]int32]string{}
		}
		p.late = p.late || p.tracks.plain && p.threads[[2]int32{pid, tid}] != args.Name
		p.threads[[2]int32{pid, tid}] = args.Name
	case `"process_labels"`:
		if p.tracks.labels == nil {
			p.tracks.labels = map[int32]string{}
		}
		p.late = p.late || p.tracks.plain && p.tracks.labels[pid] != args.Labels
		p.tracks.labels[pid] = args.Labels
	}
}

// again: rows whose kind depends on names of processes and threads that come after them.
func (k *kineto) again() bool { return k.late }

func (p *kinetoPass) flow(f *fields) error {
	ts, ok := micros(f.ts)
	if !ok {
		return nil
	}
	if f.args != nil { // of our own export
		members(f.args, func(key, value []byte) {
			if n := integer(value); string(key) == "ts_ns" && n != nil {
				ts = *n - p.base
			}
		})
	}
	e := &edge{id: p.number(f.id), begin: f.ph == 's', launch: launchArrow(f.cat), pid: p.small(f.pid), tid: p.small(f.tid), ts: ts}
	if e.launch { // its ids are others than those of forward and backward
		e.id |= 1 << 62
	}
	return p.h.edge(e)
}

// kept is a string of the file, unquoted, made once for all events that have it.
func (p *kinetoPass) kept(quoted []byte) string {
	if s, ok := p.texts[string(quoted)]; ok {
		return s
	}
	s := unquote(quoted)
	if len(p.texts) < 1<<18 {
		p.texts[string(quoted)] = s
	}
	return s
}

func unquote(quoted []byte) string {
	if len(quoted) < 2 || quoted[0] != '"' {
		return string(quoted)
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		s = strings.ToValidUTF8(string(quoted[1:len(quoted)-1]), "\ufffd")
	}
	// Parquet's readers end at a NUL here and there.
	return strings.ReplaceAll(s, "\x00", "\ufffd")
}
