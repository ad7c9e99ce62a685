package report

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// launchOwner finds, for each call that launched work, the innermost operator
// that it stands in, whatever lint says of the times of either.
var launchOwner = `
	CREATE OR REPLACE TEMP TABLE launch_owner AS
	WITH RECURSIVE launched AS (
		SELECT DISTINCT session_id, launch_id FROM rows WHERE layer = 'device' AND launch_id IS NOT NULL),
	host AS (SELECT session_id, span_id, parent_id, layer IN ('op', 'autograd') AS owns, ` + operatorName + ` AS name,
		coalesce(python_stack_id, stack_id) AS stack_id, weight FROM span WHERE layer <> 'device'),
	up AS (
		SELECT l.session_id, l.launch_id, h.span_id, h.parent_id, h.owns, h.name, h.stack_id, h.weight, 0 AS depth
		FROM launched l JOIN host h ON h.session_id = l.session_id AND h.span_id = l.launch_id
		UNION ALL
		SELECT u.session_id, u.launch_id, h.span_id, h.parent_id, h.owns, h.name, coalesce(u.stack_id, h.stack_id), u.weight, depth + 1
		FROM up u JOIN host h ON h.session_id = u.session_id AND h.span_id = u.parent_id
		WHERE NOT u.owns AND depth < 24)
	SELECT session_id, launch_id, max(span_id) FILTER (owns) AS operator_id, max(name) FILTER (owns) AS operator, max(stack_id) AS stack_id,
	max(weight) AS weight
	FROM up GROUP BY ALL`

// launchedNS is how long a row d of a device, launched by an o of launch_owner, counts. CUPTI has all work of devices, and a
// recording in slices the launches of a part: each stands for as many as its weight says.
const launchedNS = "d.duration_ns * CASE WHEN d.device_time_method = 'cupti' THEN greatest(o.weight, 1) ELSE 1 END"

// operatorName is an operator's, or a backward node's: in traces of torch.profiler
// the node has its own operator of the same name in it, so that it is called there
// what it is called in the trace.
const operatorName = `CASE WHEN layer = 'autograd' AND end_method = 'imported' THEN 'autograd::engine::evaluate_function: ' || name ELSE name END`

func (b *builder) operators() error {
	if b.deviceRows > 0 {
		if err := b.db.Exec(b.ctx, launchOwner); err != nil {
			return err
		}
	} else if err := b.db.Exec(b.ctx, "CREATE OR REPLACE TEMP TABLE launch_owner (session_id VARCHAR, launch_id BIGINT, operator_id BIGINT, "+
		"operator VARCHAR, stack_id BIGINT, weight DOUBLE)"); err != nil {
		return err
	}
	swept, err := b.sweep()
	if err != nil {
		return err
	}
	b.swept = swept
	if err := swept.keep(b); err != nil {
		return err
	}
	onDevice, err := b.onDevice()
	if err != nil {
		return err
	}
	for _, h := range swept.operators {
		o := h.Operator
		o.TotalMS, o.SelfMS = h.totalNS/1e6, h.selfNS/1e6
		if h.computes {
			o.FLOPs = &h.flops
		}
		if h.masks {
			o.FLOPsCausal = &h.causal
		}
		if h.moves {
			o.Bytes = &h.bytes
		}
		if ns, is := onDevice[o.Name]; is {
			device := ns / 1e6
			o.DeviceMS = &device
		}
		b.report.Operators = append(b.report.Operators, o)
	}
	slices.SortFunc(b.report.Operators, func(x, y Operator) int {
		byDevice := 0
		if b.devicesLead() {
			byDevice = cmp.Compare(orNone(y.DeviceMS), orNone(x.DeviceMS))
		}
		return cmp.Or(byDevice, cmp.Compare(y.SelfMS, x.SelfMS), strings.Compare(x.Name, y.Name))
	})
	if len(b.report.Operators) == 0 {
		if others := b.otherFrameworks(); others != "" {
			b.untold("operators: none of %s are recorded at any level; samples show where its time goes, and its I/O and memory are recorded",
				others)
		} else {
			b.untold("operators: the dataset has none%s", b.atLevel("record at --level window, or at least with --probe op"))
		}
	}
	return b.intervals()
}

// otherFrameworks are those that the recorded processes have mapped and that have no operators that probes know: ""
// beside PyTorch, or on a device, whose runtime is recorded.
func (b *builder) otherFrameworks() string {
	var names sql.NullString
	err := b.db.Row(b.ctx, `SELECT string_agg(DISTINCT name, ', ' ORDER BY name) FROM (SELECT CASE
			WHEN path ILIKE '%lib\_lightgbm%' ESCAPE '\' THEN 'LightGBM' WHEN path ILIKE '%libxgboost%' THEN 'XGBoost'
			WHEN path ILIKE '%onnxruntime%' THEN 'ONNX Runtime'
			WHEN path ILIKE '%/jaxlib/%' THEN 'JAX on a CPU' WHEN path ILIKE '%/tensorflow/%' THEN 'TensorFlow'
			WHEN path ILIKE '%/\_catboost%' ESCAPE '\' THEN 'CatBoost' END AS name FROM library)
		WHERE NOT EXISTS (SELECT 1 FROM library WHERE path ILIKE '%libtorch\_cpu%' ESCAPE '\') AND NOT EXISTS (SELECT 1 FROM span
		WHERE layer IN ('runtime', 'device'))`, nil, &names)
	if err != nil {
		return "" // recordings without a table of libraries
	}
	return names.String
}

// orNone puts what has no value behind all that have one.
func orNone(v *float64) float64 {
	if v == nil {
		return -1
	}
	return *v
}

// onDevice is how long what each operator launched itself took devices, in ns.
func (b *builder) onDevice() (map[string]float64, error) {
	found := map[string]float64{}
	if b.deviceRows == 0 {
		return found, nil
	}
	return found, b.each(`
		SELECT o.operator, sum(`+launchedNS+`)::DOUBLE FROM rows d JOIN launch_owner o USING (session_id, launch_id)
		WHERE d.layer = 'device' AND d.category IN ('kernel', 'collective', 'copy', 'set') AND o.operator IS NOT NULL
		GROUP BY ALL`, func(scan scan) error {
		var name string
		var ns sql.NullFloat64
		if err := scan(&name, &ns); err != nil {
			return err
		}
		if ns.Valid {
			found[name] = ns.Float64
		}
		return nil
	})
}

// intervals says of operators that were recorded in slices how far off their estimates
// may be. Of a part of a recording that is not known.
func (b *builder) intervals() error {
	o := b.options
	estimated := func(o Operator) bool { return o.Estimated }
	if o.Rank != nil || o.FromMS != nil || o.ToMS != nil || !slices.ContainsFunc(b.report.Operators, estimated) {
		return nil
	}
	at := map[string]*Operator{}
	for i := range b.report.Operators {
		at[b.report.Operators[i].Name] = &b.report.Operators[i]
	}
	// Intervals of several recordings add up to one that is rather too wide.
	return b.each(`
		SELECT name, sum(calls_lo), CASE WHEN count(calls_hi) = count(*) THEN sum(calls_hi) END,
			sum(total_lo_ns) / 1e6, CASE WHEN count(total_hi_ns) = count(*) THEN sum(total_hi_ns) / 1e6 END
		FROM operator_estimate WHERE layer IN ('op', 'autograd', 'collective') GROUP BY name`, func(scan scan) error {
		var name string
		var callsLo, callsHi, totalLo, totalHi *float64
		if err := scan(&name, &callsLo, &callsHi, &totalLo, &totalHi); err != nil {
			return err
		}
		if o := at[name]; o != nil && o.Estimated {
			o.CallsLo, o.CallsHi = around(o.Calls, callsLo, callsHi)
			o.TotalLoMS, o.TotalHiMS = around(o.TotalMS, totalLo, totalHi)
		}
		return nil
	})
}

// around is an interval that reaches to the estimate: the intervals are of what whole steps say, estimates of what all rows
// say, and where the two differ both may be right.
func around(estimate float64, lo, hi *float64) (*float64, *float64) {
	if lo != nil && *lo > estimate {
		lo = &estimate
	}
	if hi != nil && *hi < estimate {
		hi = &estimate
	}
	return lo, hi
}

func (b *builder) kernels() error {
	if b.deviceRows > 0 {
		return b.each(`
			WITH launched AS (
				SELECT d.name, any_value(d.category) AS category, o.operator, count(*) AS calls, sum(d.duration_ns)::DOUBLE AS ns,
					o.operator IS NOT NULL OR coalesce(any_value(d.device_time_method), '') <> 'cupti' AS told
				FROM rows d LEFT JOIN launch_owner o USING (session_id, launch_id)
				WHERE d.layer = 'device' AND d.category IN ('kernel', 'collective', 'copy', 'set') GROUP BY d.name, o.operator)
			SELECT name, any_value(category), sum(calls)::BIGINT, sum(ns) / 1e6, 100.0 * sum(ns) / sum(sum(ns)) OVER (),
				coalesce(arg_max(operator, ns) FILTER (operator IS NOT NULL), ''),
				coalesce(100.0 * max(ns) FILTER (operator IS NOT NULL) / nullif(sum(ns) FILTER (told), 0), 0)
			FROM launched GROUP BY name ORDER BY 4 DESC, 1`, func(scan scan) error {
			var k Kernel
			err := scan(&k.Name, &k.Category, &k.Calls, &k.DeviceMS, &k.Percent, &k.Operator, &k.OperatorPercent)
			b.report.Kernels = append(b.report.Kernels, k)
			return err
		})
	}
	return b.each(`
		SELECT name, sum(weight), coalesce(sum(duration_ns * weight), 0) / 1e6, sum(device_time_lo_ns * weight), sum(device_time_hi_ns * weight)
		FROM rows WHERE layer = 'runtime' AND category IN ('launch', 'copy', 'set', 'graph') GROUP BY name ORDER BY 5 DESC NULLS LAST, 3 DESC,
		1`, func(scan scan) error {
		var l Launch
		var lo, hi sql.NullFloat64
		if err := scan(&l.Name, &l.Calls, &l.HostMS, &lo, &hi); err != nil {
			return err
		}
		l.LoMS, l.HiMS = msOf(lo), msOf(hi)
		b.report.Launches = append(b.report.Launches, l)
		return nil
	})
}

func (r *Report) operatorSection() section {
	t := &table{header: []string{"operator", "calls", "host ms", "own ms"}, left: []bool{true, false, false, false}}
	withDevice, withFLOPs, withInterval := false, false, false
	total := 0.0
	t.of = "of own ms"
	for _, o := range r.Operators {
		withInterval = withInterval || o.TotalLoMS != nil
		withDevice = withDevice || o.DeviceMS != nil
		withFLOPs = withFLOPs || o.FLOPs != nil
		if o.DeviceMS != nil {
			total += *o.DeviceMS
		}
	}
	if !withDevice || r.Profiled != nil {
		total = 0
		for _, o := range r.Operators {
			total += o.SelfMS
		}
	}
	if withInterval {
		t.header = []string{"operator", "≈ calls", "≈ host ms", "≈ own ms", "± %"}
		t.left = append(t.left, false)
	}
	if withDevice {
		t.header, t.left, t.of = append(t.header, "device ms"), append(t.left, false), "of device ms"
	}
	if withDevice && withInterval && r.Steps != nil && r.Steps.ByCUPTI { // each launch stands for as many as its weight says
		t.header[len(t.header)-1] = "≈ device ms"
	}
	if withDevice && r.Profiled != nil {
		t.header[len(t.header)-1], t.of = "device ms, profiled", "of own ms"
	}
	if withFLOPs {
		t.header, t.left = append(t.header, "FLOP"), append(t.left, false)
	}
	for _, o := range r.Operators {
		row := []string{o.Name, count(o.Calls), number(o.TotalMS), number(o.SelfMS)}
		if withInterval {
			row = append(row, o.error())
		}
		share := o.SelfMS
		if withDevice {
			row = append(row, optional(o.DeviceMS))
		}
		if withDevice && r.Profiled == nil {
			share = 0
			if o.DeviceMS != nil {
				share = *o.DeviceMS
			}
		}
		if withFLOPs {
			text := "–"
			if o.FLOPs != nil {
				text = flopText(*o.FLOPs)
			}
			row = append(row, text)
		}
		t.rows = append(t.rows, row)
		t.share = append(t.share, share/max(total, 1e-9))
	}
	s := section{title: "Operators", table: t}
	if withInterval {
		if r.stretched != "" {
			s.note("%s", r.stretched)
		}
		if r.UnseenMS > 0 {
			s.note("no slice covers %s that are unlike a step: calls in it are counted by samples%s", msText(r.UnseenMS),
				atMostFive(r.UnseenOperators))
		}
		if c := r.Calibration; c != nil && !c.Applied {
			s.note("samples do not calibrate these: of %.0f inside of slices %.0f agree with the open row on the operator", c.Samples, c.Agree)
		}
		if r.OperatorsClosed > 0 {
			s.note("estimates added up to %.0f %% of the time in which samples saw operators, and were shortened to it", 100/r.OperatorsClosed)
		}
		if c := r.Calibration; c != nil && c.Applied {
			s.note("times are calibrated by samples and sum to the time that these show%s", c.sentence())
		}
		s.note("from slices: ± is how far off host ms may be, in 19 of 20 cases (? where nothing tells it); query --example estimates " +
			"has the ends")
	}
	return s
}

// atMostFive names operators that no slice recorded.
func atMostFive(names []string) string {
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > 5 {
		more = fmt.Sprintf(" and %d more", len(names)-5)
	}
	return fmt.Sprintf("; only samples show %s%s", strings.Join(names[:min(len(names), 5)], ", "), more)
}

// sentence says how samples and slices agree.
func (c *Calibration) sentence() (text string) {
	if c.Samples > 0 {
		text = fmt.Sprintf("; %.0f of %.0f samples inside of slices agree on the operator", c.Agree, c.Samples)
	}
	if c.Disagree > 0 {
		text += fmt.Sprintf("; of %d operators too few slices, or slices that disagree: samples alone", c.Disagree)
	}
	return text
}

// error is how far off an estimate may be, in percent.
func (o *Operator) error() string {
	switch {
	case o.TotalLoMS == nil:
		return "–"
	case o.TotalHiMS == nil:
		return "?"
	case o.TotalMS <= 0:
		return "0"
	}
	return fmt.Sprintf("%.0f", 100*max(*o.TotalHiMS-o.TotalMS, o.TotalMS-*o.TotalLoMS)/o.TotalMS)
}

func (r *Report) kernelSection() section {
	t := &table{header: []string{"kernel", "calls", "device ms", "%", "operator"}, left: []bool{true, false, false, false, true},
		of: "of device ms"}
	for _, k := range r.Kernels {
		operator := k.Operator
		if operator != "" && k.OperatorPercent < 99.5 { // others launch it, too, or who did is not known
			operator += fmt.Sprintf(" (%.0f %%)", k.OperatorPercent)
		}
		t.rows = append(t.rows, []string{k.Name, fmt.Sprint(k.Calls), number(k.DeviceMS), percentText(k.Percent), operator})
		t.share = append(t.share, k.Percent/100)
	}
	title := "Kernels and copies"
	if r.Profiled != nil {
		title += " in " + r.Profiled.covered.Text()
	}
	return section{title: title, table: t}
}

func (r *Report) launchSection() section {
	t := &table{header: []string{"launched", "calls", "host ms", "device ms, at least", "at most"}, left: []bool{true, false, false, false,
		false}}
	for _, l := range r.Launches {
		t.rows = append(t.rows, []string{l.Name, count(l.Calls), number(l.HostMS), optional(l.LoMS), optional(l.HiMS)})
	}
	return section{title: "Work handed to devices (times on the device are bounds)", table: t}
}
