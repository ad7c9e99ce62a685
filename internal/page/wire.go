package page

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"strings"

	"github.com/ebpfprof/ebpfprof/internal/page/pyramid"
	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// packedHeader begins a packed picture. What follows are columns, little-endian, of Count values each: start, duration
// and count (4 bytes each), name and lane (2), depth, flags, busy and share (1). Times are in units of UnitNS from FromNS
// on, since ns since 1970 do not fit into a double; the duration 2^32-1 is that of a call whose end was not seen.
type packedHeader struct {
	Count     int         `json:"count"`
	FromNS    int64       `json:"from_ns"`
	UnitNS    int64       `json:"unit_ns"`
	Level     int         `json:"level"`
	BinNS     int64       `json:"bin_ns"`
	Coarsened int         `json:"coarsened"`
	Partial   bool        `json:"partial"`
	UntilNS   int64       `json:"until_ns"` // if Partial
	Names     [][2]string `json:"names"`    // name and layer
}

// pack writes a picture as bytes. Calls are cut where the window ends, whole bins around it.
func pack(p *pyramid.Pyramid, w pyramid.Window, picture *pyramid.Picture) ([]byte, error) {
	bin := pyramid.Width(picture.Level)
	from, until := w.From/bin*bin, (w.Until+bin-1)/bin*bin
	n := len(picture.Rects)
	h := packedHeader{
		Count: n, FromNS: from, UnitNS: max(1, (until-from)/(math.MaxUint32-1)+1), Level: picture.Level, BinNS: bin,
		Coarsened: picture.Coarsened, Partial: picture.Partial, UntilNS: picture.UntilNS, Names: [][2]string{},
	}
	numbers := map[uint32]uint16{}
	starts, durations, counts := make([]uint32, n), make([]uint32, n), make([]uint32, n)
	names, lanes := make([]uint16, n), make([]uint16, n)
	small := make([]uint8, 4*n)
	for i, r := range picture.Rects {
		number, known := numbers[r.Name]
		if !known {
			number = uint16(len(h.Names))
			numbers[r.Name] = number
			name := p.NameOf(r.Name)
			h.Names = append(h.Names, [2]string{printable.Short(name.Name), printable.Short(name.Layer)})
		}
		start, end := max(r.Start, from), min(r.Start+max(r.Duration, 0), until)
		starts[i] = uint32((start - from) / h.UnitNS)
		durations[i] = math.MaxUint32
		if r.Duration >= 0 {
			durations[i] = uint32(max(end-start, 0) / h.UnitNS)
		}
		counts[i] = uint32(min(r.Count, math.MaxUint32))
		names[i], lanes[i] = number, uint16(r.Lane)
		small[i], small[n+i] = uint8(r.Depth), r.Flags
		small[2*n+i], small[3*n+i] = 255, r.Share
		if r.Flags&pyramid.Cell != 0 {
			small[2*n+i] = share(r.Busy, bin)
		}
	}
	header, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	for len(header)%4 != 0 {
		header = append(header, ' ')
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(header)+20*n), uint32(len(header)))
	out = append(out, header...)
	for _, column := range [][]uint32{starts, durations, counts} {
		for _, v := range column {
			out = binary.LittleEndian.AppendUint32(out, v)
		}
	}
	for _, column := range [][]uint16{names, lanes} {
		for _, v := range column {
			out = binary.LittleEndian.AppendUint16(out, v)
		}
	}
	return append(out, small...), nil
}

// compressed writes bytes, compressed a little where the page takes that: over SSH it pays.
func compressed(w http.ResponseWriter, r *http.Request, body []byte) error {
	if len(body) < 4096 || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body)
		return nil
	}
	w.Header().Set("Content-Encoding", "gzip")
	out, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, _ = out.Write(body)
	_ = out.Close()
	return nil
}
