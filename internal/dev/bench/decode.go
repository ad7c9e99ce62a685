package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/ebpfprof/ebpfprof/bpf"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/figure"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/recording"
	"github.com/ebpfprof/ebpfprof/internal/dev/bench/setup"
	"github.com/ebpfprof/ebpfprof/tracer"
	"github.com/ebpfprof/ebpfprof/tracer/decode"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// decodeResult is what a second process says of decoding and writing.
type decodeResult struct {
	Spans     uint64  `json:"spans"`
	WallNS    float64 `json:"wall_ns_per_span"`
	CPUNS     float64 `json:"cpu_ns_per_span"`
	AloneNS   float64 `json:"decode_cpu_ns_per_span"` // without a dataset
	Bytes     float64 `json:"bytes_per_span"`
	PeakRSSMB float64 `json:"peak_rss_mb"`
	perSecond figure.Spread
}

// measureDecoding runs the child, a process of its own so that its memory and
// its one core are those of the decoding alone.
func (r *results) measureDecoding(s setup.Settings) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r.decoding = &decodeResult{}
	for range 3 {
		c := exec.Command("taskset", "-c", strconv.Itoa(setup.TracerCore), self, "-decode", strconv.Itoa(s.Spans))
		c.Env = append(os.Environ(), "GOMAXPROCS=1")
		c.Stderr = os.Stderr
		out, err := c.Output()
		if err != nil {
			return fmt.Errorf("the decoding child: %w", err)
		}
		var one decodeResult
		if err := json.Unmarshal(out, &one); err != nil {
			return err
		}
		r.decoding.perSecond.Add(1e9 / one.WallNS / 1e6)
		if r.decoding.CPUNS == 0 || one.CPUNS < r.decoding.CPUNS {
			one.perSecond = r.decoding.perSecond
			*r.decoding = one
		} else {
			r.decoding.PeakRSSMB = max(r.decoding.PeakRSSMB, one.PeakRSSMB)
		}
		setup.Say("  %.2f M spans/s (wall), %.0f ns CPU a span, %.1f B a span, peak %.0f MB", 1e3/one.WallNS, one.CPUNS, one.Bytes, one.PeakRSSMB)
	}
	return nil
}

// decodeChild decodes synthetic records into a dataset and prints the figures.
func decodeChild(spans int) error {
	calls := make([]*tracer.Call, 60)
	for i := range calls {
		calls[i] = &tracer.Call{Layer: "op", Category: "forward", Name: fmt.Sprintf("aten::operator_%d", i)}
	}
	alone, _, err := decodeInto(event.Discard{}, calls, spans)
	if err != nil {
		return err
	}
	sink, err := recording.NewScratch()
	if err != nil {
		return err
	}
	defer sink.Remove()
	cpu, start := setup.CPUTime(), time.Now()
	_, written, err := decodeInto(sink, calls, spans)
	if err != nil {
		return err
	}
	if err := sink.Close(); err != nil {
		return err
	}
	wall, cpu := float64(time.Since(start)), setup.CPUTime()-cpu
	return json.NewEncoder(os.Stdout).Encode(decodeResult{
		Spans: written, WallNS: wall / float64(written), CPUNS: cpu * 1e9 / float64(written), AloneNS: alone,
		Bytes: float64(recording.TableBytes(filepath.Join(sink.Dir, "dataset", "span"))) / float64(written), PeakRSSMB: peakRSS(),
	})
}

// decodeInto replays synthetic records into a sink. It returns the CPU time of one, in
// nanoseconds, and how many spans they were.
func decodeInto(sink event.Sink, calls []*tracer.Call, spans int) (nanoseconds float64, decoded uint64, err error) {
	decoder := decode.NewReplay(sink, calls)
	records := newImitation(1 << 16)
	runtime.GC()
	// What a ring's reader does with each record: copy it out.
	raw := unsafe.Slice((*byte)(unsafe.Pointer(new([16]uint64))), recordBytes)
	cpu := setup.CPUTime()
	for done := 0; done < spans; done += len(records.records) {
		for i := range records.records {
			copy(raw, unsafe.Slice((*byte)(unsafe.Pointer(&records.records[i])), recordBytes))
			if err := decoder.Record(raw); err != nil {
				return 0, 0, err
			}
		}
		records.advance()
	}
	decoded, damaged, err := decoder.Flush()
	if err != nil || damaged > 0 {
		return 0, 0, fmt.Errorf("%d records were damaged: %w", damaged, err)
	}
	return (setup.CPUTime() - cpu) * 1e9 / float64(decoded), decoded, nil
}

const recordBytes = int(unsafe.Sizeof(bpf.CallCallRecord{}))

// imitation are records as the kernel would make them of a training loop: two
// threads that take turns, operators nested up to three deep, inner ones first.
type imitation struct {
	records []bpf.CallCallRecord
	random  *rand.Rand
	now, id uint64
	span    uint64 // ids in one round
	length  uint64 // nanoseconds of one round
}

func newImitation(n int) *imitation {
	im := &imitation{random: rand.New(rand.NewPCG(1, 2)), now: 1e12, id: 1 << 40}
	first := im.now
	for t := uint32(0); len(im.records) < n; t++ {
		im.call(4242+t/500%2, 0, 0)
	}
	im.span, im.length = im.id-1<<40, im.now-first
	return im
}

func (im *imitation) call(tid uint32, parent uint64, depth int) {
	im.id++
	im.now += 600 + uint64(im.random.IntN(2500))
	r := bpf.CallCallRecord{
		Kind: uint8(bpf.CallRecordKindRECORD_SPAN), End: uint8(tracer.EndExitSite), Status: uint8(tracer.StatusOK),
		Spec: uint32(min(59, im.random.ExpFloat64()*12)), SpanId: im.id, ParentId: parent, StartNs: im.now, Tgid: 4242, Tid: tid,
		Sequence: math.MaxUint64, Epoch: 1,
	}
	if im.random.IntN(6) == 0 {
		r.Sequence = im.id / 7
	}
	for range im.random.IntN(3 - depth) {
		im.call(tid, r.SpanId, depth+1)
	}
	im.now += 300 + uint64(math.Exp(7+im.random.NormFloat64()))
	r.EndNs = im.now
	im.records = append(im.records, r)
}

// advance makes the next round of the same records, later, with ids of its own.
func (im *imitation) advance() {
	for i := range im.records {
		r := &im.records[i]
		r.SpanId += im.span
		if r.ParentId != 0 {
			r.ParentId += im.span
		}
		r.StartNs += im.length
		r.EndNs += im.length
		if r.Sequence != math.MaxUint64 {
			r.Sequence += im.span / 7
		}
	}
}

// peakRSS is the most memory this process has had, MB.
func peakRSS() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024 / 1e6
		}
	}
	return math.NaN()
}
