package importer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	fastgzip "github.com/klauspost/compress/gzip"

	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// kineto is a trace of torch.profiler, or another one in Chrome's JSON.
type kineto struct {
	path string
	size int64
	gzip bool

	// Of the document, learnt by the first pass.
	base        int64
	distributed struct{ rank, worldSize *int32 }
	devices     []struct {
		Name string `json:"name"`
	}
	own     *Facts // of an export of ours
	names   map[int32]string
	threads map[[2]int32]string
	words   map[string]int32 // numbers for threads that have names in their place
	left    map[string]int64 // events that are not imported, by their kind
	events  int
}

func (k *kineto) name() string { return "torch.profiler" }

func (k *kineto) describe() description {
	d := description{
		base: k.base, rank: k.distributed.rank, worldSize: k.distributed.worldSize, framework: "pytorch",
		processNames: k.names, threadNames: k.threads,
	}
	if d.rank == nil {
		d.rank = rankOf(k.path)
	}
	if len(k.devices) > 0 {
		d.deviceName = k.devices[0].Name
	}
	if k.own != nil {
		k.own.correct(&d)
	}
	for kind, n := range k.left {
		d.warnings = append(d.warnings, event.Warning{Kind: "import", Source: kind, Count: n,
			Detail: fmt.Sprintf("%d events of kind %q of the trace have no table in a dataset and were dropped", n, kind)})
	}
	return d
}

// counted tells how much of the file has been read.
type counted struct {
	in   io.Reader
	read int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.read += int64(n)
	return n, err
}

// unpacked stops a file that unpacks to far more than any trace: events differ in their times and
// numbers, and become a tenth to a hundredth.
type unpacked struct {
	in     io.Reader
	packed *counted
	read   int64
}

const (
	mostUnpacked  = 1 << 30 // whatever it was packed to
	mostTimesSize = 400
)

func (u *unpacked) Read(b []byte) (int, error) {
	n, err := u.in.Read(b)
	if u.read += int64(n); u.read > mostUnpacked && u.read > mostTimesSize*u.packed.read {
		return n, fmt.Errorf("it unpacks to more than %d times its size, which no trace does", mostTimesSize)
	}
	return n, err
}

func (k *kineto) read(ctx context.Context, brief bool, h handler, progress func(float64)) error {
	file, err := os.Open(k.path)
	if err != nil {
		return fmt.Errorf("importing %s: %w", k.path, err)
	}
	defer file.Close()
	c := &counted{in: file}
	var in io.Reader = c
	if k.gzip {
		z, err := fastgzip.NewReader(bufio.NewReaderSize(c, 1<<18))
		if err != nil {
			return fmt.Errorf("%s %w: %w", k.path, ErrFormat, err)
		}
		defer z.Close()
		in = &unpacked{in: z, packed: c}
	}
	p := &kinetoPass{kineto: k, brief: brief, h: h, calls: calls{}, kernels: kernels{}, texts: map[string]string{}}
	in, err = withoutMark(in)
	if err != nil {
		return fmt.Errorf("%s %w: %w", k.path, ErrFormat, err)
	}
	s := newScanner(ctx, in)
	k.events = 0
	p.each = func(v []byte) error {
		if k.events++; k.events%20_000 == 0 && progress != nil {
			progress(float64(c.read) / float64(max(k.size, 1)))
		}
		return p.event(v)
	}
	if brief {
		k.left = map[string]int64{}
	}
	if err := p.document(s); err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, errStopped) {
			return err
		}
		if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, fastgzip.ErrChecksum) {
			err = errors.New("its gzip checksum does not hold")
		}
		return fmt.Errorf("%s %w (after %d events): %w", k.path, ErrFormat, k.events, err)
	}
	p.leave(beginAlone, p.pairs.count)
	if !p.found {
		return fmt.Errorf("%s %w: it has no traceEvents, so it is no trace", k.path, ErrFormat)
	}
	return nil
}

// byteOrderMark is what some editors and exporters begin a file in UTF-8 with.
const byteOrderMark = "\ufeff"

// withoutMark skips a byte order mark.
func withoutMark(in io.Reader) (io.Reader, error) {
	head := make([]byte, len(byteOrderMark))
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if string(head[:n]) == byteOrderMark {
		return in, nil
	}
	return io.MultiReader(bytes.NewReader(head[:n]), in), nil
}

// errStopped is wrapped by errors that are not the file's.
var errStopped = errors.New("import stopped")

type kinetoPass struct {
	*kineto
	brief   bool
	h       handler
	each    func([]byte) error
	found   bool
	calls   calls
	kernels kernels
	texts   map[string]string // of names and shapes, each kept once
	pairs   pairs
	row     row
}

func (p *kinetoPass) document(s *scanner) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	if c == '[' {
		p.found = true
		return s.list(p.each)
	}
	if err := s.take('{'); err != nil {
		return err
	}
	for {
		c, err := s.next()
		switch {
		case err != nil:
			return err
		case c == '}':
			return nil
		case c == ',':
			s.pos++
			continue
		}
		raw, err := s.value()
		if err != nil {
			return err
		}
		if len(raw) < 2 || raw[0] != '"' {
			return fmt.Errorf("invalid JSON: expected a name after %d bytes", s.offset())
		}
		key := string(raw[1 : len(raw)-1])
		if err := s.take(':'); err != nil {
			return err
		}
		if err := p.member(s, key); err != nil {
			return err
		}
	}
}

func (p *kinetoPass) member(s *scanner, key string) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	switch key {
	case "traceEvents":
		if c == '[' {
			p.found = true
			return s.list(p.each)
		}
	case "baseTimeNanoseconds", "distributedInfo", "deviceProperties", "ebpfprof":
		v, err := s.value()
		if err != nil {
			return err
		}
		switch key { // what does not parse is absent
		case "baseTimeNanoseconds":
			text := strings.Trim(string(v), `"`)
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				p.base = n
			} else if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n < 1<<62 {
				p.base = int64(n)
			}
		case "distributedInfo":
			members(v, func(key, value []byte) {
				switch n := integer(value); {
				case n == nil || *n < 0 || *n > 1<<30:
				case string(key) == "rank":
					rank := int32(*n)
					p.distributed.rank = &rank
				case string(key) == "world_size":
					size := int32(*n)
					p.distributed.worldSize = &size
				}
			})
		case "ebpfprof":
			p.facts(v)
		default:
			_ = json.Unmarshal(v, &p.devices)
		}
		return nil
	}
	return s.skip()
}

// fields of an event, as they stand in the file.
type fields struct {
	ph                                     byte
	cat, name, pid, tid, ts, dur, id, args []byte
}

func (p *kinetoPass) event(object []byte) error {
	var f fields
	ok := members(object, func(key, value []byte) {
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
	if !ok {
		return fmt.Errorf("it is not JSON: event %d", p.events)
	}
	switch f.ph {
	case 'X':
		return p.span(&f)
	case 's', 'f', 't':
		if p.brief && string(f.cat) == `"fwdbwd"` {
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
	default:
		p.leave("ph "+string(f.ph), 1)
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
	id := p.words[t]
	if id == 0 {
		id = int32(1<<30 + len(p.words))
		p.words[t] = id
	}
	return int64(id)
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
			if err != nil || f > 1e15 || f < -1e15 {
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
		Name string `json:"name"`
	}
	if f.args == nil || json.Unmarshal(f.args, &args) != nil || args.Name == "" {
		return
	}
	pid, tid := int32(p.number(f.pid)), int32(p.number(f.tid))
	switch string(f.name) {
	case `"process_name"`:
		if p.names == nil {
			p.names = map[int32]string{}
		}
		p.names[pid] = args.Name
	case `"thread_name"`:
		if p.threads == nil {
			p.threads = map[[2]int32]string{}
		}
		p.threads[[2]int32{pid, tid}] = args.Name
	}
}

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
	return p.h.edge(&edge{id: p.number(f.id), begin: f.ph == 's', pid: int32(p.number(f.pid)), tid: int32(p.number(f.tid)), ts: ts})
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
