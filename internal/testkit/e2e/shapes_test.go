package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/testkit/e2e/harness"
	"github.com/ebpfprof/ebpfprof/tracer/tensor"
)

// profiledCalls is what torch.profiler says of each call.
type profiledCalls struct {
	Calls []call           `json:"calls"`
	FLOPs map[string]int64 `json:"flops"` // with_flops, by operator; all calls of it
}

// call is an operator's call: sizes, strides and type of each argument.
type call struct {
	name    string
	sizes   [][]int64
	strides [][]int64
	types   []string
}

func (c *call) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&c.name, &c.sizes, &c.strides, &c.types})
}

// differs says how what was recorded of a call is not what torch.profiler says. Of
// arguments that are no tensors nothing is compared; of lists how many tensors they
// have, where the profiler says it (PyTorch 2).
func (c *call) differs(other *call) string {
	if c.name != other.name || len(c.sizes) != len(other.sizes) {
		return "another call"
	}
	for i, kind := range other.types {
		switch {
		case kind == "":
			if c.types[i] != "" && c.types[i] != "Scalar" && c.types[i] != "ScalarList" && c.types[i] != "TensorList" {
				return fmt.Sprintf("argument %d is %s, and the profiler has no tensor", i, c.types[i])
			}
		case c.types[i] != kind:
			return fmt.Sprintf("argument %d is %q, not %q", i, c.types[i], kind)
		case kind == "TensorList" && len(other.sizes[i]) == 0:
		case !slices.Equal(c.sizes[i], other.sizes[i]):
			return fmt.Sprintf("argument %d has sizes %v, not %v", i, c.sizes[i], other.sizes[i])
		case !slices.Equal(c.strides[i], other.strides[i]):
			return fmt.Sprintf("argument %d has strides %v, not %v", i, c.strides[i], other.strides[i])
		}
	}
	return ""
}

// Shapes are those that torch.profiler records, call by call, of every operator of the
// table that the jobs call.
func TestShapesEqualTorchProfiler(t *testing.T) {
	jobs := map[string][]string{
		"mlp":         {"mlp.py", "--steps", "10"},
		"transformer": {"transformer.py", "--steps", "3", "--depth", "2", "--lists"},
		"resnet":      {"resnet.py", "--steps", "2", "--warmup", "1"},
	}
	harness.BesideEachTorch(t, func(t *testing.T, v harness.Torch) {
		for name, job := range jobs {
			t.Run(name, func(t *testing.T) {
				argv := v.Job(job[0], job[1:]...)
				r := harness.Shared(t, harness.Unbudgeted, argv...)
				r.Lossless(t)
				want := harness.Profile[profiledCalls](t, append(argv, "--profile-detail", "calls")...)
				sameShapes(t, r, want.Calls)
				sameFLOPs(t, r, want.FLOPs)
				if name == "transformer" {
					bytesOfLists(t, r)
				}
			})
		}
	})
}

func sameShapes(t *testing.T, r *harness.Recording, profiled []call) {
	t.Helper()
	profiled = slices.DeleteFunc(profiled, func(c call) bool { return !tensor.Shaped(c.name) })
	rows := r.Rows(t, fmt.Sprintf(`SELECT name, coalesce(input_dims, ''), coalesce(input_strides, ''), coalesce(input_types, '')
		FROM span WHERE layer = 'op' AND %s ORDER BY ts_ns, span_id`, r.Region(t)))
	rows = slices.DeleteFunc(rows, func(row []any) bool { return !tensor.Shaped(row[0].(string)) })
	if len(rows) != len(profiled) || len(rows) < 100 {
		t.Fatalf("%d calls recorded, %d profiled", len(rows), len(profiled))
	}
	without, wrong, operators := map[string]int{}, 0, map[string]int{}
	for i, row := range rows {
		got := call{name: row[0].(string)}
		if row[1] == "" {
			without[got.name]++
			continue
		}
		for j, into := range []any{&got.sizes, &got.strides, &got.types} {
			if err := json.Unmarshal([]byte(row[1+j].(string)), into); err != nil {
				t.Fatal(err)
			}
		}
		operators[got.name]++
		if how := got.differs(&profiled[i]); how != "" {
			if wrong++; wrong <= 10 {
				t.Errorf("call %d, %s: %s\nrecorded %v\nprofiled %v", i, got.name, how, got, profiled[i])
			}
		}
	}
	if wrong > 0 || len(without) > 0 {
		t.Errorf("of %d calls %d are wrong; without shapes are %v", len(rows), wrong, without)
	}
	t.Logf("%d calls of %d operators", len(rows), len(operators))
	// Bytes and devices follow from sizes and types; the profiler has neither.
	products := r.Rows(t, `SELECT count(*) > 0, count(*) FILTER (input_devices <> '["cpu", "cpu"]' OR
		(input_bytes->>0) <> (4 * (input_dims->'$[0][0]')::BIGINT * (input_dims->'$[0][1]')::BIGINT)::VARCHAR)
		FROM span WHERE layer = 'op' AND name = 'aten::mm' AND input_dims IS NOT NULL`)[0]
	if fmt.Sprint(products) != "[true 0]" {
		t.Errorf("matrix products with wrong bytes or devices: %v", products)
	}
}

// sameFLOPs compares the products and convolutions of which torch.profiler has FLOPs, too: it
// counts a convolution's where it is asked for, the recording where it is done, and a bias,
// one more for each element of the result, it does not count (no convolution has one here).
func sameFLOPs(t *testing.T, r *harness.Recording, profiled map[string]int64) {
	t.Helper()
	counted := r.Counts(t, `SELECT CASE WHEN contains(name, 'conv') THEN 'aten::conv2d' ELSE name END,
			sum(flops - CASE name WHEN 'aten::addmm' THEN (input_dims->'$[1][0]')::BIGINT * (input_dims->'$[2][1]')::BIGINT ELSE 0 END)::BIGINT
		FROM span WHERE layer = 'op' AND flops IS NOT NULL AND NOT contains(name, 'backward') AND `+r.Region(t)+` GROUP BY ALL`)
	compared := 0
	for _, name := range []string{"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::conv2d"} {
		want, ok := profiled[name]
		if !ok {
			continue
		}
		if compared++; counted[name] != want {
			t.Errorf("%s: %d FLOPs, with_flops counts %d", name, counted[name], want)
		}
	}
	if compared == 0 {
		t.Errorf("torch.profiler has FLOPs of %v", profiled)
	}
	t.Logf("FLOPs of %d operators are those of with_flops", compared)
}

// bytesOfLists: of a list are told the bytes of all its tensors, and where the first lies.
// Each of three steps adds to 3×7 doubles, joins the norms of 29 parameters and, of both
// blocks, the gradients of query, key and value: 3×4×64×128 floats.
func bytesOfLists(t *testing.T, r *harness.Recording) {
	t.Helper()
	got := fmt.Sprint(r.Rows(t, `SELECT name, count(*), input_bytes->>0, input_devices->>0 FROM span
		WHERE layer = 'op' AND name IN ('aten::cat', 'aten::_foreach_add_') AND input_bytes IS NOT NULL AND %s GROUP BY ALL
		ORDER BY ALL`, r.Region(t)))
	if want := "[[aten::_foreach_add_ 3 168 cpu] [aten::cat 3 116 cpu] [aten::cat 6 393216 cpu]]"; got != want {
		t.Errorf("lists of tensors: %s, want %s", got, want)
	}
}
