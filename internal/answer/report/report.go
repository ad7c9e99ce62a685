// Package report puts the answers about a dataset together: a verdict first,
// then what the job is, its steps, where their time goes, what the device did,
// operators, kernels, lines, memory, and what was lost or estimated before
// anything that it could spoil. It renders them as text, markdown, JSON and one
// HTML file.
package report

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/answer/explain"
	"github.com/ebpfprof/ebpfprof/internal/answer/findings"
	"github.com/ebpfprof/ebpfprof/internal/answer/hang"
	"github.com/ebpfprof/ebpfprof/internal/answer/inference"
	"github.com/ebpfprof/ebpfprof/internal/answer/memplan/analysis"
	"github.com/ebpfprof/ebpfprof/internal/dataset"
	"github.com/ebpfprof/ebpfprof/internal/dataset/lint"
	"github.com/ebpfprof/ebpfprof/internal/model/timeline"
	"github.com/ebpfprof/ebpfprof/internal/peaks"
)

// Options choose a part of the dataset; the zero value is all of it.
type Options struct {
	Rank   *int     // only this rank
	FromMS *float64 // since the recording's first row
	ToMS   *float64
	Step   *int // only the period of this step
	// Machine is what the machine of the recording can do, if that was measured.
	Machine *peaks.Measured
	// Peaks are of the user's devices, before those that are known.
	Peaks []peaks.Peak
	// Progress is called with what is being computed; nil for none.
	Progress func(what string)
}

// Report is what `report --format json` writes; docs/json.md describes it.
type Report struct {
	// Verdict is the first sentence of the first paragraph.
	Verdict      string                `json:"verdict"`
	Explanations []explain.Explanation `json:"explanations"`
	// Shares divide the time of the thread that sets the pace; nil without samples.
	Shares   *explain.Shares `json:"shares"`
	Dataset  string          `json:"dataset"`
	Source   string          `json:"source"`
	Rows     RowCount        `json:"rows"`
	Warnings []string        `json:"warnings"`
	Untold   []string        `json:"cannot_be_told"`
	Job      []Process       `json:"job"`
	WindowMS float64         `json:"window_ms"`
	Steps    *Steps          `json:"steps"`
	// Inference is what a loop that does not train does in a second; nil otherwise.
	Inference   *inference.Rate     `json:"inference"`
	Phases      []Phase             `json:"phases"`
	PhasesOf    string              `json:"phases_of"`
	stretched   string              // how much longer probes made steps; "" is hardly
	worker      string              // what the thread that the report is about is called
	OutOfMemory []analysis.Shortage `json:"out_of_memory"`
	Hang        *hang.Report        `json:"hang"`               // null where nothing waited for long when the recording ended
	Standing    []hang.Process      `json:"standing,omitempty"` // where threads stood, if nothing moved when the recording ended
	Device      *Device             `json:"device"`
	Devices     []Device            `json:"devices"`
	// Profiled is what part of the recording Device and Devices are of; nil where they are of all of it.
	Profiled *Profiled `json:"profiled"`
	// DeviceInSteps is Device from the first settled step to the last, where CUPTI says what devices did from the process's
	// begin: Device has its start in it. nil otherwise.
	DeviceInSteps *Device `json:"device_in_steps"`
	// DeviceLaunched is Device by the work whose launch was recorded; nil where all was.
	DeviceLaunched *Device `json:"device_launched"`
	// DeviceBounds is in Device's place where only bounds of its times are known, and beside it where Device is of a part.
	DeviceBounds *DeviceBounds `json:"device_bounds"`
	Operators    []Operator    `json:"operators"`
	// OperatorsClosed is what estimated times of operators were multiplied with so that they do not exceed the time in
	// which samples saw operators; 0 is nothing.
	OperatorsClosed float64      `json:"operators_closed"`
	Calibration     *Calibration `json:"calibration"` // nil where nothing was recorded in slices, or samples are missing
	// UnseenMS is time of the training thread that is unlike its steps and that no slice covered; UnseenOperators are those
	// that samples show there and that no slice has recorded anywhere.
	UnseenMS        float64            `json:"unseen_ms"`
	UnseenOperators []string           `json:"unseen_operators"`
	Kernels         []Kernel           `json:"kernels"`
	Launches        []Launch           `json:"launches"`
	Lines           []Line             `json:"lines"`
	Threads         []Thread           `json:"threads"`
	IO              []IO               `json:"io"`
	ShortProcesses  []ShortProcess     `json:"short_processes"`
	Memory          []Memory           `json:"memory"`
	Findings        []findings.Finding `json:"findings"`
	// Contention is nil where the training thread hardly ever waited for a CPU.
	Contention *Contention `json:"contention"`
	Bound      *Bound      `json:"bound"`
	checks     *lint.Result

	// The paragraphs that a reader sees first; second is "" where samples do not explain the time.
	first, second string

	flames []flameGraph
}

// RowCount says on how much of the dataset the answers are computed.
type RowCount struct {
	Total           int64        `json:"total"`
	LeftOut         int64        `json:"left_out"`
	Replaced        int64        `json:"replaced"` // of them, those that count as long as their like
	ComputedPercent float64      `json:"computed_on_percent"`
	Sentence        string       `json:"sentence"`
	Reasons         []lint.Check `json:"reasons"`
}

// Process is one process of the job.
type Process struct {
	PID       int32  `json:"pid"`
	Rank      *int32 `json:"rank"`
	WorldSize *int32 `json:"world_size"`
	Command   string `json:"command,omitempty"`
	Python    string `json:"python,omitempty"`
	Framework string `json:"framework,omitempty"`
	Device    string `json:"device,omitempty"`
}

// Steps are the repetitions of the training loop.
type Steps struct {
	PID   int    `json:"pid"`
	TID   int    `json:"tid"`
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// Represented is for how many steps these stand: more where only slices of what tells
	// steps were recorded, an estimate then.
	Represented float64 `json:"represented_count"`
	Timed       int     `json:"timed_count"`
	Warmup      int     `json:"warmup_count"`
	ByCUPTI     bool    `json:"by_cupti"`       // CUPTI recorded in the process: all of them are longer than without it
	Profiled    int     `json:"profiled_count"` // in which another profiler ran, whose trace was merged
	Whole       int     `json:"whole_count"`
	Evaluate    int     `json:"evaluate_count"`
	MeanMS      float64 `json:"mean_ms"`
	StddevMS    float64 `json:"stddev_ms"`
	Slowest     Slowest `json:"slowest"`
	Method      string  `json:"method"`
	Sequence    string  `json:"sequence"`
	// Unit is what a step is, in its user's words, Trains whether its process trains, and Confidence how sure the loop is.
	Unit       string  `json:"unit"`
	Trains     bool    `json:"trains"`
	Confidence float64 `json:"confidence"`
	// Of the settled steps that no slice of the recording touched, where others were in
	// slices: how long a step is without the probes of detail.
	Unsliced   int       `json:"unsliced_count"`
	UnslicedMS *float64  `json:"unsliced_mean_ms"`
	PeriodMS   []float64 `json:"period_ms"`
}

// Contention is how much of the steps' time the training thread was ready to run and had
// no CPU, and how many CPUs the job and all other processes kept busy meanwhile.
type Contention struct {
	Percent   float64  `json:"percent"`
	WindowMS  float64  `json:"window_ms"`
	JobCPUs   float64  `json:"job_cpus"`
	OtherCPUs *float64 `json:"other_cpus"` // nil where the machine's counters were not recorded
	who       string
}

// Slowest is the step with the longest period.
type Slowest struct {
	Index int     `json:"index"`
	MS    float64 `json:"ms"`
}

// Phase is what a step's time goes to on the training thread. Where steps in slices were
// looked into, the share is theirs and MSPerStep an estimate: the share of a step between
// slices, which no probes of detail made longer.
type Phase struct {
	Phase     string   `json:"phase"`
	MSPerStep float64  `json:"ms_per_step"`
	Percent   float64  `json:"percent"`
	LoMS      *float64 `json:"lo_ms"`
	HiMS      *float64 `json:"hi_ms"`
	Estimated bool     `json:"estimated"`
}

// Operator is what all calls of one name took. TotalMS is on the host, with what
// they called; DeviceMS of the kernels that they launched themselves.
type Operator struct {
	Name     string   `json:"name"`
	Layer    string   `json:"layer"`
	Calls    float64  `json:"calls"`
	TotalMS  float64  `json:"total_ms"`
	SelfMS   float64  `json:"self_ms"`
	DeviceMS *float64 `json:"device_ms"`
	FLOPs    *float64 `json:"flops"`
	// FLOPsCausal are FLOPs without what causal masks hide; nil where no call has such a mask.
	FLOPsCausal *float64 `json:"flops_causal"`
	Bytes       *float64 `json:"bytes_moved"`
	Estimated   bool     `json:"estimated"`
	// Where the recording was made in slices, and the report is of all of it: 95 % intervals
	// of Calls and TotalMS. The upper ends are nil where nothing tells them.
	CallsLo   *float64 `json:"calls_lo"`
	CallsHi   *float64 `json:"calls_hi"`
	TotalLoMS *float64 `json:"total_lo_ms"`
	TotalHiMS *float64 `json:"total_hi_ms"`
}

// Kernel is work of one name on devices.
type Kernel struct {
	Name     string  `json:"name"`
	Category string  `json:"category"`
	Calls    int64   `json:"calls"`
	DeviceMS float64 `json:"device_ms"`
	Percent  float64 `json:"percent"`
	Operator string  `json:"operator,omitempty"` // that launched the most of it, as far as that is known
	// OperatorPercent is how much of the kernel's time that operator launched.
	OperatorPercent float64 `json:"operator_percent,omitempty"`
}

// Launch is work that the host handed to a device in a recording of our own.
type Launch struct {
	Name   string   `json:"name"`
	Calls  float64  `json:"calls"`
	HostMS float64  `json:"host_ms"`
	LoMS   *float64 `json:"device_lo_ms"`
	HiMS   *float64 `json:"device_hi_ms"`
}

// Calibration is how samples and rows in slices agree on operators' times.
type Calibration struct {
	Applied bool    `json:"applied"`
	Samples float64 `json:"samples"` // inside of slices, in operators
	Agree   float64 `json:"agree"`   // of them the stack shows the operator that the open row is of
	// Disagree is of how many operators too few slices have rows, or their times are too far from the samples', which are
	// the estimate alone.
	Disagree int `json:"disagree"`
}

// Line is a place in the user's code.
type Line struct {
	File     string   `json:"file"`
	Line     int32    `json:"line"`
	Function string   `json:"function"`
	CPUMS    *float64 `json:"cpu_ms"`
	WaitMS   *float64 `json:"wait_ms"`
	HostMS   *float64 `json:"operators_ms"`
	DeviceMS *float64 `json:"device_ms"`
}

// Thread is what one thread did while it was looked at.
type Thread struct {
	PID   int32   `json:"pid"`
	TID   int32   `json:"tid"`
	Name  string  `json:"name"`
	CPUMS float64 `json:"cpu_ms"`
	OffMS float64 `json:"wait_ms"`
}

// Memory is the peak of one process in one space.
type Memory struct {
	PID       int32   `json:"pid"`
	Space     string  `json:"space"`
	DeviceID  *int32  `json:"device_id"`
	PeakBytes int64   `json:"peak_bytes"`
	AtMS      float64 `json:"at_ms"` // after the first row
	Said      *int64  `json:"allocator_said_bytes"`
	Reserved  *int64  `json:"reserved_bytes"`
	Owners    []Owner `json:"owners"`
	Estimated bool    `json:"estimated"`
	// Time in the allocator, nil where there are no steps or its calls were not timed.
	AllocationUS *float64 `json:"allocation_us_per_step"`
	FreeUS       *float64 `json:"free_us_per_step"`
	series       []point
}

// Owner is who had allocated what was live at the peak.
type Owner struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Blocks int64  `json:"blocks"`
}

type point struct{ x, y float64 }

// Build computes the report. A part that fails fails the report.
func Build(ctx context.Context, db *dataset.DB, o Options) (*Report, error) {
	b := &builder{ctx: ctx, db: db, options: o, report: &Report{
		Dataset: db.Root(), Warnings: []string{}, Untold: []string{}, Job: []Process{}, Phases: []Phase{}, Devices: []Device{},
		Operators: []Operator{}, UnseenOperators: []string{}, Kernels: []Kernel{}, Launches: []Launch{}, Lines: []Line{}, Threads: []Thread{},
		Memory: []Memory{}, OutOfMemory: []analysis.Shortage{}, Findings: []findings.Finding{},
		Explanations: []explain.Explanation{},
	}}
	for _, part := range []struct {
		name string
		f    func() error
	}{
		{"checking", b.lint}, {"the step", b.chooseStep}, {"the job", b.job}, {"devices", b.devices}, {"operators", b.operators},
		{"kernels", b.kernels},
		{"steps", b.steps}, {"devices in steps", b.devicesInSteps}, {"what waits", b.hangs}, {"phases", b.phases}, {"findings", b.findings},
		{"lines", b.parted(b.lines)}, {"threads", b.parted(b.threads)}, {"reads and writes", b.transfers}, {"short processes", b.shortProcesses},
		{"memory", b.memory}, {"explanations", b.parted(b.explanations)}, {"bounds", b.bound}, {"flame graph", b.parted(b.flames)},
	} {
		if o.Progress != nil {
			o.Progress(part.name)
		}
		if err := part.f(); err != nil {
			if errors.Is(err, dataset.ErrNoRank) {
				return nil, err
			}
			return nil, fmt.Errorf("computing %s: %w", part.name, err)
		}
	}
	b.conclude()
	return b.report, nil
}

type builder struct {
	ctx     context.Context
	db      *dataset.DB
	options Options
	report  *Report

	part            dataset.Scan // of the view rows, for scans past DuckDB
	firstNS, lastNS int64
	imported        bool
	weighted        bool // some rows stand for more than one call
	deviceRows      int64
	spans, samples  int64
	stepRows        []stepRow // settled
	warmup          []stepRow
	loops           []timeline.Thread
	stretched       *timeline.Stretched // nil where no slices made steps longer
	memories        *analysis.Memory    // nil where no allocation was recorded
	explained       *explain.Verdict    // nil where samples do not explain the time
	stood           *hang.Report        // nil of an import
	swept           *sweep              // the operators' rows
}

// parted asks of samples what is asked of calls: of the part that is looked at. Memory is
// always of the whole recording, since what is live was allocated before.
func (b *builder) parted(f func() error) func() error {
	return func() error {
		part := dataset.Part{Rank: b.options.Rank, From: b.part.From, Until: b.part.Until}
		if part == (dataset.Part{}) {
			return f()
		}
		if err := b.db.Restrict(b.ctx, part); err != nil {
			return err
		}
		return errors.Join(f(), b.db.Restrict(b.ctx, dataset.Part{}))
	}
}

func (b *builder) untold(format string, args ...any) {
	b.report.Untold = append(b.report.Untold, fmt.Sprintf(format, args...))
}
