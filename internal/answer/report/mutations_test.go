package report

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A trace of torch.profiler has been written in many ways, by its versions, by vendors and by
// the tools that cut and merge such files. A way of writing changes no figure.
var otherWays = map[string]func(document map[string]any, rows []map[string]any) (any, string){
	"no external ids": func(d map[string]any, rows []map[string]any) (any, string) {
		eachArguments(rows, func(args map[string]any) { delete(args, "External id") })
		return d, "t.json"
	},
	"numbers as text": func(d map[string]any, rows []map[string]any) (any, string) {
		for _, r := range rows {
			asText(r, "ts", "dur", "pid", "tid")
		}
		eachArguments(rows, func(args map[string]any) { asText(args, "correlation", "External id", "device", "stream", "bytes") })
		return d, "t.json"
	},
	"rows in no order": func(d map[string]any, rows []map[string]any) (any, string) {
		shuffled := slices.Clone(rows)
		rand.New(rand.NewPCG(4, 2)).Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
		return with(d, shuffled), "t.json"
	},
	"calls of HIP": func(d map[string]any, rows []map[string]any) (any, string) {
		for _, r := range rows {
			if rest, is := strings.CutPrefix(fmt.Sprint(r["name"]), "cuda"); is && r["cat"] == "cuda_runtime" {
				r["name"], r["cat"] = "hip"+rest, "hip_runtime"
			}
		}
		return d, "t.json"
	},
	"a bare list": func(d map[string]any, rows []map[string]any) (any, string) { return rows, "t.json" },
	"another base of time": func(d map[string]any, rows []map[string]any) (any, string) {
		d["baseTimeNanoseconds"] = 1_700_000_000_000_000_000
		return d, "t.json"
	},
	"no base of time": func(d map[string]any, rows []map[string]any) (any, string) {
		delete(d, "baseTimeNanoseconds")
		return d, "t.json"
	},
	"compressed, by no name": func(d map[string]any, rows []map[string]any) (any, string) { return d, "compressed" },
	"categories of 1.8": func(d map[string]any, rows []map[string]any) (any, string) {
		old := map[any]string{"cpu_op": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset"}
		for _, r := range rows {
			category, is := old[r["cat"]]
			if !is {
				continue
			}
			r["cat"] = category
			if category != "Operator" && category != "Runtime" {
				r["tid"] = fmt.Sprint("stream ", r["tid"])
			}
		}
		eachArguments(rows, func(args map[string]any) {
			for from, to := range map[string]string{"External id": "external id", "Input Dims": "Input dims"} {
				if v, is := args[from]; is {
					delete(args, from)
					args[to] = v
				}
			}
		})
		return d, "t.json"
	},
	"as ROCm writes it": func(d map[string]any, rows []map[string]any) (any, string) {
		calls := map[any]string{"cudaLaunchKernel": "hipLaunchKernel", "cudaLaunchKernelExC": "hipExtModuleLaunchKernel",
			"cuLaunchKernelEx": "hipModuleLaunchKernel",
			"cuLaunchKernel":   "hipModuleLaunchKernel", "cudaMemcpyAsync": "hipMemcpyWithStream", "cudaStreamSynchronize": "hipStreamSynchronize",
			"cudaDeviceSynchronize": "hipDeviceSynchronize"}
		for _, r := range rows {
			args, _ := r["args"].(map[string]any)
			switch r["cat"] {
			case "cuda_runtime", "cuda_driver":
				if name, is := calls[r["name"]]; is {
					r["name"] = name
				}
				r["cat"] = "cuda_runtime"
				args["stream"], args["kernel"], args["ptr"] = "0x5581c9a0", "k", "0x7f10"
				delete(args, "cbid")
			case "kernel", "gpu_memcpy":
				r["tid"], args["stream"] = 0, 0
				args["kind"] = "Dispatch Kernel"
				for _, name := range []string{"External id", "context", "warps per SM", "blocks per SM", "registers per thread", "shared memory",
					"est. achieved occupancy %"} {
					delete(args, name)
				}
			}
		}
		d["deviceProperties"] = []any{}
		return d, "t.json"
	},
	"no correlations": func(d map[string]any, rows []map[string]any) (any, string) {
		eachArguments(rows, func(args map[string]any) { delete(args, "correlation") })
		return d, "t.json"
	},
	"begins and ends":        func(d map[string]any, rows []map[string]any) (any, string) { return with(d, asPairs(rows)), "t.json" },
	"with a byte order mark": func(d map[string]any, rows []map[string]any) (any, string) { return d, "marked" },
}

func TestOtherWaysOfWritingATraceChangeNoFigure(t *testing.T) {
	if testing.Short() {
		t.Skip("a report of each of a dozen traces")
	}
	write := func(content any, name string) string {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "marked":
			data = append([]byte("\ufeff"), data...)
		case "compressed":
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			z.Write(data)
			z.Close()
			data = packed.Bytes()
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	want := figures(t, built(t, imported(t, shared(t, bert+".json.gz"))))
	if len(want) < 40 {
		t.Fatalf("%d figures to compare: %v", len(want), want)
	}
	for name, mutate := range otherWays {
		t.Run(name, func(t *testing.T) {
			document, all := events(t)
			var rows []map[string]any
			for _, e := range all {
				rows = append(rows, e.(map[string]any))
			}
			got := figures(t, built(t, imported(t, write(mutate(document, rows)))))
			for key, figure := range want {
				if got[key] != figure {
					t.Errorf("%s\n%s, want\n%s", key, got[key], figure)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d figures, want %d", len(got), len(want))
			}
		})
	}
}

// figures are what a report says of operators, kernels, the device and steps, without the
// last digits of sums, which depend on the order.
func figures(t *testing.T, r *Report) map[string]string {
	t.Helper()
	of := map[string]string{}
	add := func(key string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var text []string
		for token, err := d.Token(); err == nil; token, err = d.Token() {
			if n, is := token.(json.Number); is {
				f, _ := n.Float64()
				text = append(text, strconv.FormatFloat(f, 'g', 9, 64))
			} else {
				text = append(text, fmt.Sprint(token))
			}
		}
		of[key] = strings.Join(text, " ")
	}
	add("device", r.Device)
	add("steps", r.Steps)
	for _, o := range r.Operators {
		add("operator "+o.Name, o)
	}
	for _, k := range r.Kernels {
		add("kernel "+k.Name, k)
	}
	add("rows", []int64{r.Rows.Total, r.Rows.LeftOut})
	return of
}

func with(document map[string]any, rows []map[string]any) map[string]any {
	document["traceEvents"] = rows
	return document
}

func eachArguments(rows []map[string]any, f func(map[string]any)) {
	for _, r := range rows {
		if args, ok := r["args"].(map[string]any); ok && r["ph"] == "X" {
			f(args)
		}
	}
}

func asText(members map[string]any, names ...string) {
	for _, name := range names {
		if v, is := members[name].(float64); is {
			members[name] = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
}

// asPairs writes the operators and the runtime's calls as events for begin and end.
func asPairs(rows []map[string]any) (out []map[string]any) {
	threads := map[string][]map[string]any{}
	for _, r := range rows {
		if r["ph"] == "X" && (r["cat"] == "cpu_op" || r["cat"] == "cuda_runtime") {
			thread := fmt.Sprint(r["pid"], r["tid"])
			threads[thread] = append(threads[thread], r)
		} else {
			out = append(out, r)
		}
	}
	start := func(r map[string]any) float64 { return r["ts"].(float64) }
	end := func(r map[string]any) float64 { return start(r) + r["dur"].(float64) }
	for _, calls := range threads {
		slices.SortStableFunc(calls, func(a, b map[string]any) int {
			return cmp.Or(cmp.Compare(start(a), start(b)), cmp.Compare(end(b), end(a)))
		})
		var open []map[string]any
		closing := func(until float64) {
			for k := len(open) - 1; k >= 0 && end(open[k]) <= until; k-- {
				r := open[k]
				at := json.Number(strconv.FormatFloat(end(r), 'f', 3, 64))
				out = append(out, map[string]any{"ph": "E", "name": r["name"], "pid": r["pid"], "tid": r["tid"], "ts": at})
				open = open[:k]
			}
		}
		for _, r := range calls {
			closing(start(r))
			begin := map[string]any{}
			for k, v := range r {
				if k != "dur" {
					begin[k] = v
				}
			}
			begin["ph"] = "B"
			out, open = append(out, begin), append(open, r)
		}
		closing(1e300)
	}
	return out
}
