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

	"github.com/klauspost/compress/flate"
	fastgzip "github.com/klauspost/compress/gzip"

	"github.com/ebpfprof/ebpfprof/internal/exchange/unpacking"
)

// kineto is a trace of torch.profiler, or another one in Chrome's JSON.
type kineto struct {
	path string
	size int64

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
	marked  bool             // it begins with a byte order mark
	array   bool             // of events alone, without a document around them
	cut     string           // why events after those that were read are missing
	mended  int64            // events with quotation marks in their texts
	unknown map[string]int64 // events of categories that are not known, by what they were taken for
	late    bool
	torch   bool // it has rows of torch.profiler's categories
	tracks  tracks
}

// mostUnpacked bytes are read of a file whatever it was packed to.
const mostUnpacked = 1 << 30

var errNoTrace = errors.New("no trace")

// mostLayers of gzip are unpacked: some stores pack what is packed.
const mostLayers = 4

// text is what the file has, unpacked and without a byte order mark.
func (k *kineto) text(file *os.File) (io.Reader, *unpacking.Counted, error) {
	c := unpacking.Count(file)
	in := bufio.NewReaderSize(c, 1<<18)
	for range mostLayers {
		if head, _ := in.Peek(2); !isGzip(head) {
			break
		}
		z, err := fastgzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("%s %w: %w", k.path, ErrFormat, err)
		}
		in = bufio.NewReaderSize(unpacking.Bound(z, c, mostUnpacked, errNoTrace), 1<<18)
	}
	head, err := in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, fmt.Errorf("%s %w: %w", k.path, ErrFormat, err)
	}
	if isPerfetto(head) {
		return newPerfettoText(in), c, nil
	}
	if text := plainText(head); text != "" && text[0] != '{' && text[0] != '[' {
		return nil, nil, fmt.Errorf("%s %w: %s", k.path, ErrFormat, otherFormat(text))
	}
	k.marked = strings.HasPrefix(string(head), byteOrderMark)
	plain, err := withoutMark(in)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %w: %w", k.path, ErrFormat, err)
	}
	return plain, c, nil
}

func (k *kineto) read(ctx context.Context, brief bool, h handler, progress func(float64)) error {
	file, err := os.Open(k.path)
	if err != nil {
		return fmt.Errorf("importing %s: %w", k.path, err)
	}
	defer file.Close()
	in, c, err := k.text(file)
	if err != nil {
		return err
	}
	p := &kinetoPass{kineto: k, brief: brief, h: h, calls: calls{}, kernels: kernels{}, texts: map[string]string{}}
	s := newScanner(ctx, in)
	k.events = 0
	p.each = func(v []byte) error {
		if k.events++; k.events%20_000 == 0 && progress != nil {
			progress(float64(c.Bytes()) / float64(max(k.size, 1)))
		}
		return p.event(v)
	}
	if brief {
		k.left, k.unknown, k.late, k.cut, k.array = map[string]int64{}, map[string]int64{}, false, "", false
		k.tracks.plain = false
	}
	err = p.document(s)
	k.mended = s.mended
	if err != nil && !k.salvage(err, s) {
		return k.failed(err)
	}
	p.leave(beginAlone, p.pairs.count)
	if !p.found {
		return fmt.Errorf("%s %w: it has no traceEvents, so it is no trace", k.path, ErrFormat)
	}
	return nil
}

// salvage reports whether a file that can be read up to here alone is imported up to here.
func (k *kineto) salvage(err error, s *scanner) bool {
	var corrupt flate.CorruptInputError
	switch {
	case k.events == 0:
		return false
	case errors.Is(err, errEnd):
		if k.array && s.pos >= s.end { // an array of events may lack its end
			return true
		}
		k.cut = "it ends in the middle"
	case errors.As(err, &corrupt):
		k.cut = "its compressed data are damaged"
	default:
		return false
	}
	return true
}

// failed is the error of a file that cannot be read.
func (k *kineto) failed(err error) error {
	var syntax *syntaxError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, errStopped):
		return err
	case errors.Is(err, ErrFormat):
		return fmt.Errorf("%s %w", k.path, err)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, fastgzip.ErrChecksum):
		err = errors.New("its gzip checksum does not hold")
	case errors.As(err, &syntax):
		return fmt.Errorf("%s %w: it is not JSON at %s: %s", k.path, ErrFormat, k.where(syntax.at), syntax.what)
	}
	return fmt.Errorf("%s %w (after %d events): %w", k.path, ErrFormat, k.events, err)
}

// where says at which line and byte of the text, counted from 1, a place is.
func (k *kineto) where(at int64) string {
	file, err := os.Open(k.path)
	if err != nil {
		return fmt.Sprintf("byte %d", at+1)
	}
	defer file.Close()
	in, _, err := k.text(file)
	if err != nil {
		return fmt.Sprintf("byte %d", at+1)
	}
	line, left, buf := 1, at, make([]byte, 1<<16)
	for left > 0 {
		n, err := in.Read(buf[:min(left, int64(len(buf)))])
		line += bytes.Count(buf[:n], []byte{'\n'})
		if left -= int64(n); err != nil {
			break
		}
	}
	if k.marked {
		at += int64(len(byteOrderMark))
	}
	return fmt.Sprintf("line %d, byte %d", line, at+1)
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
		p.found, p.array = true, true
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
			return &syntaxError{s.offset(), "expected a member's name in quotation marks"}
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
