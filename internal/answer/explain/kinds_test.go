package explain

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/ebpfprof/ebpfprof/internal/model/usercode"
	"github.com/ebpfprof/ebpfprof/tracer/event"
)

// pure are the kinds that need samples alone.
var pure = []string{"loader", "io", "compilation", "rare_steps", "synchronisation", "gil", "serialisation", "hot_line", "kernel"}

// TestEachKindFiresAndItsNearMissDoesNot gives each kind a recording that shows it and one that nearly does.
func TestEachKindFiresAndItsNearMissDoesNot(t *testing.T) {
	forward := script + "; Net.forward@/home/me/fit.py:12; _call_impl@" + site + "torch/nn/modules/module.py:9; forward@" + site +
		"torch/nn/modules/linear.py:5; op:aten::addmm"
	next := script + "; __next__@" + site + "torch/utils/data/dataloader.py:700; "
	getitem := "_worker_loop@" + site + "torch/utils/data/_utils/worker.py:300; Photos.__getitem__@/home/me/fit.py:25; Image.convert@" + site +
		"PIL/Image.py:900; native:decode@_imaging.cpython-311.so"
	worker := func(rows ...seen) other { return other{Thread{200, 200}, rows} }
	for _, c := range []struct {
		kind string
		pace []seen
		with []other
		want string // what the sentence and the advice must match
		miss []seen // the near miss
	}{
		{kind: "loader",
			pace: []seen{{9000, "poll", next + "_try_get_data@" + site + "torch/utils/data/dataloader.py:1200"}, {9000, "on", forward}},
			with: []other{worker(seen{18000, "on", script + "; " + getitem})},
			want: `45 %.*1 workers.*Photos\.__getitem__ \(fit\.py:25\), decoding images`,
			miss: []seen{{800, "poll", next + "_try_get_data@" + site + "torch/utils/data/dataloader.py:1200"}, {18000, "on", forward}}},
		{kind: "loader",
			pace: []seen{{9000, "poll", next + "_try_get_data@" + site + "torch/utils/data/dataloader.py:1200"}, {9000, "on", forward}},
			with: []other{worker(seen{17000, "recvfrom", "_worker_loop@" + site + "torch/utils/data/_utils/worker.py:300; " +
				"Remote.__getitem__@/home/me/fit.py:25"},
				seen{1000, "on", "_worker_loop@" + site + "torch/utils/data/_utils/worker.py:300; Remote.__getitem__@/home/me/fit.py:26"})},
			want: `45 %.*1 workers wait 94 % of their time at Remote\.__getitem__ \(fit\.py:25\), in the system call recvfrom.*More workers`,
			miss: []seen{{800, "poll", next + "_try_get_data@" + site + "torch/utils/data/dataloader.py:1200"}, {18000, "on", forward}}},
		{kind: "loader",
			pace: []seen{{9000, "poll", next + "_try_get_data@" + site + "torch/utils/data/dataloader.py:1200"}, {9000, "on", forward}},
			with: []other{worker(seen{18000, "flock", "_worker_loop@" + site + "torch/utils/data/_utils/worker.py:300; " +
				"Cache.__getitem__@/home/me/fit.py:25"})},
			want: `45 %.*in the system call flock\..*more workers do not help`,
			miss: []seen{{800, "poll", next + "_try_get_data@" + site + "torch/utils/data/dataloader.py:1200"}, {18000, "on", forward}}},
		{kind: "loader",
			pace: []seen{{12000, "on", script + "; __iter__@" + site + "torch/utils/data/dataloader.py:480; " +
				"_MultiProcessingDataLoaderIter.__init__@" + site + "torch/utils/data/dataloader.py:1100; native:fork@libc.so.6"},
				{6000, "on", forward}},
			want: `60 %.*starts and stops its workers.*persistent_workers`,
			miss: []seen{{700, "on", script + "; _MultiProcessingDataLoaderIter.__init__@" + site + "torch/utils/data/dataloader.py:1100"},
				{18000, "on", forward}}},
		{kind: "loader",
			pace: []seen{{8000, "on", next + "fetch@" + site + "torch/utils/data/_utils/fetch.py:50; Texts.__getitem__@/home/me/fit.py:8; " +
				"sub@/usr/lib/python3.11/re/__init__.py:185"}, {8000, "on", forward}},
			want: `40 %.*loads its data itself.*Texts\.__getitem__ \(fit\.py:8\), in sub \(re\).*num_workers`,
			miss: []seen{{8000, "on", script + "; fetch@/home/me/fit.py:8"}, {8000, "on", forward}}},
		{kind: "io",
			pace: []seen{{5000, "fsync", script + "; save@/home/me/fit.py:9; native:os_fsync@libpython3.11.so.1.0"},
				{3000, "on", script + "; save@/home/me/fit.py:8; save@" + site + "torch/serialization.py:900"}, {8000, "on", forward}},
			want: `40 %.*checkpoint and fsync at save \(fit\.py:9\) and line 8`,
			miss: []seen{{700, "fsync", script + "; save@/home/me/fit.py:9"}, {17000, "on", forward}}},
		{kind: "io",
			pace: []seen{{5000, "read", script + "; features@/home/me/fit.py:9"}, {8000, "on", forward}},
			want: `25 %.*read at features \(fit\.py:9\)`,
			miss: []seen{{5000, "read", script + "; features@/home/me/fit.py:9; _recv@/usr/lib/python3.11/multiprocessing/connection.py:395"},
				{8000, "on", forward}}},
		{kind: "io",
			pace: []seen{{5000, "pread64", script + "; features@/home/me/fit.py:9"}, {8000, "on", forward}},
			want: `25 %.*pread64 at features \(fit\.py:9\)`,
			miss: []seen{{5000, "pread64", script + "; features@/home/me/fit.py:9; native:sqlite3_step@libsqlite3.so.0.8.6"},
				{8000, "on", forward}}},
		{kind: "compilation",
			pace: []seen{{9000, "on", script + "; train_one@/home/me/fit.py:17; compile_inner@" + site + "torch/_dynamo/convert_frame.py:900"},
				{8000, "on", forward}},
			want: `Recompilation at train_one \(fit\.py:17\) takes 45 %.*dynamic=True`,
			miss: []seen{{9000, "on", script + "; train_one@/home/me/fit.py:17; fn@" + site + "torch/_dynamo/eval_frame.py:900; <module>@" + site +
				"torch/_dynamo/convert_frame.py:3"}, {8000, "on", forward}}},
		{kind: "synchronisation",
			pace: []seen{{9000, "on", script + "; log@/home/me/fit.py:17; native:cudaStreamSynchronize@libcudart.so.12"}, {8000, "on", forward}},
			want: `45 %.*waits for the device at log \(fit\.py:17\)`,
			miss: []seen{{9000, "on", script + "; log@/home/me/fit.py:17; native:cudaLaunchKernel@libcudart.so.12"}, {8000, "on", forward}}},
		{kind: "gil",
			pace: []seen{{9000, "futex", forward + "; native:take_gil@libpython3.11.so.1.0"}, {8000, "on", forward}},
			with: []other{{Thread{100, 101}, []seen{{15000, "gil", "run@/home/me/fit.py:30"}}}},
			want: `45 %.*GIL.*another thread holds at run \(fit\.py:30\)`,
			miss: []seen{{9000, "preempted", forward + "; native:take_gil@libpython3.11.so.1.0"}, {8000, "on", forward}}},
		{kind: "serialisation",
			pace: []seen{{9000, "on", script + "; run@" + site + "uvicorn/main.py:500; serialize@" + site +
				"fastapi/routing.py:10; TypeAdapter.dump_json@" + site + "pydantic/type_adapter.py:600"},
				{5000, "on", script + "; run@" + site + "uvicorn/main.py:500; predict@/home/me/fit.py:20; op:aten::addmm"}},
			want: `45 %.*pydantic in TypeAdapter\.dump_json`,
			miss: []seen{{9000, "on", script + "; save@" + site + "torch/serialization.py:900; native:save@_pickle.cpython-311.so"},
				{5000, "on", forward}}},
		{kind: "serialisation",
			pace: []seen{{9000, "on", script + "; current_lr@/home/me/fit.py:7; safe_load@" + site + "yaml/__init__.py:125; " +
				"Scanner.check_token@" + site + "yaml/scanner.py:115"}, {8000, "on", forward}},
			want: `45 %.*: YAML in safe_load, under current_lr \(fit\.py:7\).*Parse the same text once`,
			miss: []seen{{800, "on", script + "; current_lr@/home/me/fit.py:7; safe_load@" + site + "yaml/__init__.py:125"}, {8000, "on", forward}}},
		{kind: "serialisation",
			pace: []seen{{9000, "on", script + "; share@/home/me/fit.py:7; all_gather_object@" + site +
				"torch/distributed/distributed_c10d.py:3000; _object_to_tensor@" + site + "torch/distributed/distributed_c10d.py:2900"},
				{8000, "on", forward}},
			want: `45 %.*: pickle in _object_to_tensor, under share \(fit\.py:7\).*raw bytes`,
			miss: []seen{{9000, "on", script + "; share@/home/me/fit.py:7; all_gather@" + site + "torch/distributed/distributed_c10d.py:3000"},
				{8000, "on", forward}}},
		{kind: "hot_line",
			pace: []seen{{11000, "on", script + "; generate@" + site + "transformers/generation/utils.py:3; Ban.__call__@/home/me/fit.py:18; " +
				"op:aten::select"},
				{7000, "on", script + "; generate@" + site + "transformers/generation/utils.py:3; _call_impl@" + site +
					"torch/nn/modules/module.py:9; op:aten::mm"}},
			want: `55 %.*Ban\.__call__ \(fit\.py:18\).*aten::select`,
			miss: []seen{{700, "on", script + "; Ban.__call__@/home/me/fit.py:18"}}},
		{kind: "kernel",
			pace: []seen{{11000, "on", "native:main@trainer; native:gemm@libblas.so"}},
			want: `55 %.*gemm of libblas\.so`,
			miss: []seen{{11000, "on", script + "; native:gemm@libblas.so"}}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			e := ofKind(found(t, made(t, c.pace, c.with...), c.kind), c.kind)
			if e == nil {
				t.Fatal("it does not fire")
			}
			if text := e.sentence + " " + e.Evidence + " " + e.Advice; !regexp.MustCompile(c.want).MatchString(text) {
				t.Errorf("%q\ndoes not match %s", text, c.want)
			}
			near := made(t, c.miss)
			if e := ofKind(found(t, near, c.kind), c.kind); e != nil && e.Explained >= leastShare && c.kind != "hot_line" {
				t.Errorf("the near miss fires: %s", e.sentence)
			}
			if c.kind == "hot_line" {
				if e := ofKind(found(t, near, c.kind), c.kind); e != nil {
					t.Errorf("the near miss fires: %s", e.sentence)
				}
			}
		})
	}
}

func ofKind(all []Explanation, kind string) *Explanation {
	for i := range all {
		if all[i].Kind == kind {
			return &all[i]
		}
	}
	return nil
}

// TestKnownCostsFireByTheirFrames, below the user's line, and not where the library only lies around the user's code.
func TestKnownCostsFireByTheirFrames(t *testing.T) {
	for _, c := range []struct{ stack, want string }{
		{script + "; features@/home/me/fit.py:7; DataFrame.iterrows@" + site + "pandas/core/frame.py:1500", "DataFrame's rows"},
		{script + "; features@/home/me/fit.py:7; Series.__getitem__@" + site + "pandas/core/series.py:900; Series._get_value@" + site +
			"pandas/core/series.py:1000", "DataFrame's rows"},
		{script + "; enrich@/home/me/fit.py:7; create_default_context@/usr/lib/python3.11/ssl.py:760", "TLS"},
		{script + "; snapshot@/home/me/fit.py:7; deepcopy@/usr/lib/python3.11/copy.py:128", "deepcopy"},
		{script + "; backward@" + site + "torch/_tensor.py:500; op:aten::embedding_dense_backward", "dense gradients"},
		{script + "; features@/home/me/fit.py:7; native:torch::utils::(anonymous namespace)::recursive_store@libtorch_python.so",
			"making tensors of Python lists"},
		{script + "; features@/home/me/fit.py:7; vectorize.__call__@" + site + "numpy/lib/_function_base_impl.py:2500; " +
			"native:ufunc_generic_fastcall@_multiarray_umath.cpython-311.so", "for each element or row"},
		{script + "; fetch@/home/me/fit.py:7; native:pysqlite_connection_execute@_sqlite3.cpython-311.so; native:sqlite3_step@libsqlite3.so.0",
			"asking a database, under fetch (fit.py:7)"},
		{script + "; clean@/home/me/fit.py:7; native:pattern_match@libpython3.11.so.1.0; native:sre_ucs1_match@libpython3.11.so.1.0",
			"matching regular expressions, under clean (fit.py:7)"},
		{script + "; allowed@/home/me/fit.py:7; native:list_contains@python3.11; native:long_richcompare@python3.11",
			"searching lists or tuples element by element (in, index, count, remove), under allowed (fit.py:7)"},
		{script + "; take@/home/me/fit.py:7; native:list_pop@python3.11; native:__memmove_avx_unaligned_erms@libc.so.6",
			"moving the elements of lists"},
		{script + "; load@/home/me/fit.py:7; read@/usr/lib/python3.11/zipfile.py:900; native:inflate_fast@libz.so.1.2.13", "unpacking data"},
		{script + "; load@/home/me/fit.py:7; native:zlib_Decompress_decompress@zlib.cpython-311.so", "unpacking data"},
	} {
		r := made(t, []seen{{8000, "on", c.stack}, {8000, "on", script + "; op:aten::mm"}})
		all := r.knownCosts()
		if len(all) != 1 || !strings.Contains(all[0].sentence, c.want) {
			t.Errorf("%s: %+v", c.stack, all)
		}
	}
	if all := made(t, []seen{{8000, "on", script + "; features@/home/me/fit.py:7; Series.__getitem__@" + site +
		"pandas/core/series.py:900; take@" + site + "pandas/core/algorithms.py:9"}}).knownCosts(); len(all) != 0 {
		t.Errorf("a selection of many elements is accused: %+v", all)
	}
	for _, near := range []string{"native:dict_contains@python3.11", "native:list_append@python3.11", "native:inflate_fast_path@mymodule.so",
		"native:list_sort_impl@python3.11", "native:__memmove_avx_unaligned_erms@libc.so.6"} {
		if all := made(t, []seen{{8000, "on", script + "; features@/home/me/fit.py:7; " + near}}).knownCosts(); len(all) != 0 {
			t.Errorf("%s is accused: %+v", near, all)
		}
	}
	outside := "run@" + site + "pandas/core/apply.py:5; f@/home/me/fit.py:7; op:aten::mm"
	if all := made(t, []seen{{8000, "on", outside}}).knownCosts(); len(all) != 0 {
		t.Errorf("a library around the user's code is accused: %+v", all)
	}
}

// TestGarbageCollection tells the job's own calls from the interpreter's.
func TestGarbageCollection(t *testing.T) {
	explicit := script + "; free@/home/me/fit.py:15; native:gc_collect@libpython3.11.so.1.0; native:gc_collect_main@libpython3.11.so.1.0"
	e, ok := made(t, []seen{{9000, "gc", explicit}, {9000, "on", script}}).garbage()
	if !ok || !strings.Contains(e.sentence, "gc.collect(), called at free (fit.py:15)") {
		t.Errorf("%v %s", ok, e.sentence)
	}
	e, ok = made(t, []seen{{9000, "gc", script + "; parse@/home/me/fit.py:3"}, {9000, "on", script}}).garbage()
	if !ok || strings.Contains(e.sentence, "gc.collect()") {
		t.Errorf("%v %s", ok, e.sentence)
	}
	if e, ok = made(t, []seen{{500, "gc", explicit}, {18000, "on", script}}).garbage(); ok {
		t.Errorf("2.5 %% is an explanation: %s", e.sentence)
	}
}

// TestAnomalyDetection fires by autograd's metadata, not by a traceback of another origin.
func TestAnomalyDetection(t *testing.T) {
	with := []seen{{3000, "on", script + "; native:torch::autograd::PyAnomalyMetadata::store_stack@libtorch_python.so; " +
		"format_stack@/usr/lib/python3.11/traceback.py:5"}, {12000, "on", script + "; op:aten::mm"}}
	if e, ok := made(t, with).anomaly(); !ok || !strings.Contains(e.sentence, "anomaly detection") || !strings.Contains(e.sentence,
		"fit.py:40") {
		t.Errorf("%v %s", ok, e.sentence)
	}
	without := []seen{{3000, "on", script + "; warn@/home/me/fit.py:3; format_stack@/usr/lib/python3.11/traceback.py:5"},
		{12000, "on", script + "; op:aten::mm"}}
	if e, ok := made(t, without).anomaly(); ok {
		t.Errorf("fires: %s", e.sentence)
	}
}

// TestAPoolThatPickles names the pickling; one whose tasks compute names the task.
func TestAPoolThatPickles(t *testing.T) {
	wait := script + "; Pool.map@/usr/lib/python3.11/multiprocessing/pool.py:367; Event.wait@/usr/lib/python3.11/threading.py:600; native:PyThread_acquire_lock_timed@libpython3.11.so.1.0"
	pace := []seen{{18000, "futex", wait}}
	dump := "run@/usr/lib/python3.11/threading.py:900; send@/usr/lib/python3.11/multiprocessing/connection.py:206; dumps@/usr/lib/python3.11/multiprocessing/reduction.py:51"
	score := "worker@/usr/lib/python3.11/multiprocessing/pool.py:125; score@/home/me/fit.py:12; op:aten::mm"
	first := func(others ...other) Explanation {
		r := made(t, pace, others...)
		at := r.top(r.rows(func(*Row) bool { return true }), innermost)
		return r.pool(Explanation{}, at, r.rows(func(*Row) bool { return true }))
	}
	if e := first(other{Thread{100, 101}, []seen{{15000, "on", dump}}}, other{Thread{200, 200},
		[]seen{{5000, "on", score}}}); !strings.Contains(e.sentence, "pickling") || !strings.Contains(e.sentence, "fit.py:40") {
		t.Error(e.sentence)
	}
	if e := first(other{Thread{100, 101}, []seen{{500, "on", dump}}}, other{Thread{200, 200},
		[]seen{{15000, "on", score}}}); strings.Contains(e.sentence, "pickl") || !strings.Contains(e.sentence, "score (fit.py:12)") {
		t.Error(e.sentence)
	}
}

// TestSharesSumToTheWallTime: phases and lines of a thread never exceed it.
func TestSharesSumToTheWallTime(t *testing.T) {
	r := made(t, []seen{
		{4000, "on", script + "; _call_impl@" + site + "torch/nn/modules/module.py:9; op:aten::mm"},
		{5000, "on", script + "; closure@/home/me/fit.py:5; step@" + site + "torch/optim/adam.py:100"},
		{3000, "on", script + "; step@" + site + "torch/optim/adam.py:100; closure@/home/me/fit.py:5; backward@" + site +
			"torch/_tensor.py:500; op:aten::mm"},
		{2000, "fsync", script + "; save@/home/me/fit.py:8"}, {3000, "preempted", script},
	})
	s := r.shares()
	sum, lines := 0.0, 0.0
	byPhase := map[string]float64{}
	for _, p := range s.Phases {
		sum += p.Percent
		byPhase[p.Phase] = p.MS
	}
	for _, l := range s.HotLines {
		lines += l.Percent
	}
	if math.Abs(sum-100) > 1e-6 || lines > 100+1e-6 {
		t.Errorf("phases sum to %g %%, lines to %g %%", sum, lines)
	}
	// Of frames that have a phase the innermost counts: a backward pass in an optimizer's closure is one.
	if byPhase["backward"] != 3000 || byPhase["optimizer"] != 5000 || byPhase["forward"] != 4000 || byPhase["io"] != 2000 ||
		byPhase["short waits"] != 3000 {
		t.Errorf("%+v", s.Phases)
	}
}

// TestTheSchedulersSumOfTimeWithoutACPUIsNoShortWait: once waits are sampled no row shows a preempted thread, but the
// kernel has the sum. It explains the time, and no more than is unexplained.
func TestTheSchedulersSumOfTimeWithoutACPUIsNoShortWait(t *testing.T) {
	for _, c := range []struct{ delayMS, none, short float64 }{
		{12_200, 11_720, 280}, {480, 0, 12_000}, {0, 0, 12_000}, {60_000, 12_000, 0},
	} {
		r := made(t, []seen{{7520, "on", script + "; op:aten::mm"}, {480, "preempted", script}})
		r.addRunDelay(c.delayMS * 1e6)
		byPhase, sum := map[string]float64{}, 0.0
		for _, p := range r.shares().Phases {
			byPhase[p.Phase] = math.Round(p.MS)
			sum += p.MS
		}
		if byPhase["no CPU"] != c.none || byPhase["short waits"] != c.short || math.Abs(sum-wallMS) > 1e-6 {
			t.Errorf("of %g ms: %v, in all %g ms", c.delayMS, byPhase, sum)
		}
	}
	r := made(t, []seen{training, {480, "preempted", script}})
	r.addRunDelay(10_000 * 1e6)
	r = counted(t, r, withSamples(counters(deltas(2, map[string]float64{"cpu_user": 38e9})), ranOn(2, 9000)))
	if e := mostTelling(found(t, r, "contention"), "contention"); e == nil || !strings.Contains(e.sentence,
		"50 % of the time the thread is ready to run and has no CPU: other processes") {
		t.Errorf("%+v", e)
	}
}

// TestTwoThatShareTheirSamplesAreOne: the earlier kind names it. What lies outside of the job stands by itself.
func TestTwoThatShareTheirSamplesAreOne(t *testing.T) {
	save := script + "; save@/home/me/fit.py:9; native:os_fsync@libpython3.11.so.1.0"
	all := found(t, made(t, []seen{{9000, "fsync", save}, {7000, "on", script + "; op:aten::mm"}}), pure...)
	if len(all) == 0 || all[0].Kind != "io" {
		t.Fatalf("%+v", all)
	}
	for _, e := range all[1:] {
		if e.Place == "fit.py:9" {
			t.Errorf("the same samples twice: %s", e.sentence)
		}
	}
}

// TestASmallCauseDoesNotHideALargeOne: reads of 10 % in a call of 80 % are the second explanation; of a call that is nearly
// all reads they are the first.
func TestASmallCauseDoesNotHideALargeOne(t *testing.T) {
	session := script + "; predict@/home/me/fit.py:16; InferenceSession.__init__@" + site + "onnxruntime/capi/session.py:500"
	all := merged2(t, []seen{{2000, "read", session}, {14000, "on", session}, {3000, "on", script}})
	if all[0].Kind != "other_rule" || !strings.Contains(all[0].sentence, "loading models") || ofKind(all, "io") == nil {
		t.Errorf("%+v", all)
	}
	if all = merged2(t, []seen{{12000, "read", session}, {4000, "on", session}, {3000, "on", script}}); all[0].Kind != "io" ||
		ofKind(all, "other_rule") != nil {
		t.Errorf("%+v", all)
	}
}

func merged2(t *testing.T, pace []seen) []Explanation {
	t.Helper()
	r := counted(t, made(t, pace), &event.Batch{})
	all := found(t, r, "io", "other_rule", "hot_line")
	if len(all) == 0 {
		t.Fatal("nothing explains the time")
	}
	return all
}

// TestNativeLibrariesAreNamed that Python calls, not the interpreter or the C library around them.
func TestNativeLibrariesAreNamed(t *testing.T) {
	call := script + "; Replay.add@/home/me/fit.py:11; native:PyObject_Vectorcall@libpython3.11.so.1.0; native:"
	for stack, want := range map[string]string{
		call + "dispatcher_vectorcall@_multiarray_umath.cpython-311-x86_64-linux-gnu.so; native:cfunction_call@libpython3.11.so.1.0; " +
			"native:array_concatenate@_multiarray_umath.cpython-311-x86_64-linux-gnu.so; native:memmove@libc.so.6": "in array_concatenate of NumPy.",
		call + "onnxruntime_pybind11_state.so+0x5317c0 (fn)@onnxruntime_pybind11_state.so": "in ONNX Runtime.",
		call + "list_extend@libpython3.11.so.1.0; native:memmove@libc.so.6":                "Python itself.",
		call + "THPVariable_add@libtorch_python.so; op:aten::add":                          "Python that calls aten::add.",
	} {
		all, err := hotLine(made(t, []seen{{15000, "on", stack}, {3000, "on", script}}))
		if err != nil || len(all) == 0 || !strings.HasSuffix(all[0].sentence, want) {
			t.Errorf("%+v, %v: want %s", all, err, want)
		}
	}
}

// TestALoopOverElementsOfAnArrayIsPython, not one call of NumPy: its samples are in many small functions.
func TestALoopOverElementsOfAnArrayIsPython(t *testing.T) {
	var pace []seen
	for _, function := range []string{"array_subscript", "double_subtract", "double_add", "gentype_richcompare"} {
		pace = append(pace, seen{4000, "on", script + "; cost@/home/me/fit.py:10; native:" + function + "@_multiarray_umath.so"})
	}
	if all, err := hotLine(made(t, pace)); err != nil || len(all) == 0 || !strings.Contains(all[0].sentence,
		"Python that calls functions of NumPy") || !strings.Contains(all[0].Advice, "whole arrays") {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestALineOfSeveralCallsNamesThem with their parts, and one of a single call that alone.
func TestALineOfSeveralCallsNamesThem(t *testing.T) {
	step := script + "; train@/home/me/fit.py:9; "
	forward, adam := step+"forward@"+site+"net/layers.py:3", step+"Adam.step@"+site+"torch/optim/adam.py:100"
	for want, pace := range map[string][]seen{
		", in Adam.step (torch).":            {{17000, "on", adam}, {900, "on", forward}},
		", 60 % of it in Adam.step (torch).": {{9000, "on", adam}, {6000, "on", forward}},
		", of it 47 % in Adam.step (torch), 40 % in forward (net).": {{7000, "on", adam}, {6000, "on", forward},
			{2000, "on", step + "other@" + site + "net/other.py:3"}},
	} {
		all, err := hotLine(made(t, pace))
		if err != nil || len(all) == 0 || !strings.HasSuffix(all[0].sentence, want) {
			t.Errorf("%+v, %v: want %s", all, err, want)
		}
	}
}

// TestCythonNamesAreThoseOfTheSource where they can be read.
func TestCythonNamesAreThoseOfTheSource(t *testing.T) {
	for function, want := range map[string]string{
		"__pyx_pw_5numpy_6random_10_generator_9Generator_33normal": "Generator.normal",
		"__pyx_f_6pandas_5_libs_3lib_maybe_convert":                "lib.maybe_convert",
		"__pyx_pw_99x": "__pyx_pw_99x", "__pyx_pw_": "__pyx_pw_", "__pyx_f_3": "__pyx_f_3", "array_concatenate": "array_concatenate",
	} {
		if got := cythonName(function); got != want {
			t.Errorf("%s: %s", function, got)
		}
	}
}

// TestCellsAreCalledAsTheNotebookCallsThem where their names say which they are.
func TestCellsAreCalledAsTheNotebookCallsThem(t *testing.T) {
	for file, want := range map[string]string{"<ipython-input-2-abc123>": "cell In[2]:7",
		"/tmp/ipykernel_812/1234567.py": "notebook cell 1234567:7", "/home/me/fit.py": "fit.py:7"} {
		if f := (&Frame{Kind: "python", File: file, Line: 7}); f.place() != want || !usercode.Is(file) {
			t.Errorf("%s: %s", file, f.place())
		}
	}
}

// TestTheFirstParagraphHasAtMostEightyWords, whatever names there are.
// A line of one long operator is that operator; one that calls a short one often is Python.
func TestALineOfOneLongOperatorIsThatOperator(t *testing.T) {
	for each, want := range map[int64]string{2e6: `, in aten::cat\..*collect them in a list`, 3000: `Python that calls aten::cat`} {
		r := made(t, []seen{{16000, "on", script + "; op:aten::cat"}})
		r = counted(t, r, &event.Batch{Spans: operators(event.Call{Layer: "op", Name: "aten::cat"}, 10, each, nil)})
		e := ofKind(found(t, r, "hot_line"), "hot_line")
		if e == nil || !regexp.MustCompile(want).MatchString(e.sentence+" "+e.Advice) {
			t.Errorf("%d ns a call: %+v", each, e)
		}
	}
}

func TestWaitsThatNoSampleShowsAreSaid(t *testing.T) {
	few, many := made(t, []seen{{1500, "on", script}}), made(t, []seen{{19000, "on", script}})
	if text := few.unexplained(nil); !strings.Contains(text, "For 92 % the thread waits, and no sample shows where") {
		t.Error(text)
	}
	if text := many.unexplained(nil); strings.Contains(text, "no sample") {
		t.Error(text)
	}
}

func TestAComprehensionIsCalledByItsFunction(t *testing.T) {
	for function, want := range map[string]string{"validate.<locals>.<genexpr>": "validate", "collate.<listcomp>": "collate", "<genexpr>": "",
		"run.<locals>.inner": "run.inner", "f.<locals>.<lambda>": "f.<lambda>"} {
		if got := (&Frame{Function: function}).name(); got != want {
			t.Errorf("%s is called %q, want %q", function, got, want)
		}
	}
}

func TestTheFirstParagraphHasAtMostEightyWords(t *testing.T) {
	long := strings.Repeat("many words ", 50)
	for _, parts := range [][3]string{{"A claim.", long, "Advice."}, {"A claim.", "Evidence.", long}, {long, "Evidence.", "Advice."}} {
		if n := len(strings.Fields(paragraph(parts[0], parts[1], parts[2]))); n > mostWords || n == 0 {
			t.Errorf("%d words", n)
		}
	}
	if got := paragraph("A claim.", "Evidence.", "Advice."); got != "A claim. Evidence. Advice." {
		t.Error(got)
	}
}

// TestWithoutAVerdictTheHottestLinesAreNamed, and what was looked for.
func TestWithoutAVerdictTheHottestLinesAreNamed(t *testing.T) {
	r := made(t, []seen{{900, "on", script + "; a@/home/me/fit.py:1"}, {800, "on", script + "; b@/home/me/fit.py:2"},
		{700, "on", script + "; c@/home/me/fit.py:3"}, {600, "on", script + "; d@/home/me/fit.py:4"}})
	v := &Verdict{}
	v.write(r)
	for _, want := range []string{"not explained", "a (fit.py:1)", "b (fit.py:2)", "c (fit.py:3)"} {
		if !strings.Contains(v.First, want) {
			t.Errorf("%q lacks %q", v.First, want)
		}
	}
	if strings.Contains(v.First, "fit.py:4") || !strings.Contains(v.Second, "Looked for") {
		t.Errorf("%s\n%s", v.First, v.Second)
	}
}
