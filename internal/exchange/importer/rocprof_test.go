package importer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// madeUp is what a job of two steps did, as each form of rocprofv3 says it below: a copy, two kernels, of which one is
// RCCL's, and a wait, in a range of roctx.
type madeUp struct {
	domain, name, message string
	start, end            int64
	correlation           int64
	kernel, bytes         int64 // of device rows; 0: a call
}

const (
	rocmPID    = 4242
	rocmThread = 4243
)

func rocmJob() (all []madeUp) {
	for step := range int64(2) {
		at, id := 1_000_000_000+step*1_000_000, step*10
		all = append(all,
			madeUp{domain: "MARKER_CORE_RANGE_API", name: "roctxThreadRangeA", message: fmt.Sprintf("step %d", step), start: at, end: at + 900_000,
				correlation: id + 1},
			madeUp{domain: "HIP_RUNTIME_API", name: "hipMemcpyAsync", start: at + 10_000, end: at + 20_000, correlation: id + 2},
			madeUp{domain: "MEMORY_COPY", name: "MEMORY_COPY_HOST_TO_DEVICE", start: at + 30_000, end: at + 60_000, correlation: id + 2,
				bytes: 4096},
			madeUp{domain: "HIP_RUNTIME_API", name: "hipLaunchKernel", start: at + 70_000, end: at + 75_000, correlation: id + 3},
			madeUp{domain: "KERNEL_DISPATCH", start: at + 100_000, end: at + 500_000, correlation: id + 3, kernel: 7},
			madeUp{domain: "HIP_RUNTIME_API", name: "hipLaunchKernel", start: at + 80_000, end: at + 85_000, correlation: id + 4},
			madeUp{domain: "KERNEL_DISPATCH", start: at + 510_000, end: at + 700_000, correlation: id + 4, kernel: 8},
			madeUp{domain: "HIP_RUNTIME_API", name: "hipDeviceSynchronize", start: at + 90_000, end: at + 800_000, correlation: id + 5})
	}
	return all
}

var rocmKernels = map[int64][2]string{7: {"_Z4gemmPf.kd", "gemm(float*)"}, 8: {"ncclDevKernel.kd", "ncclDevKernel_Generic(void*)"}}

const rocmSuffix = "_0000aa11_22bb"

// rocpdTrace is the job as a database; of schema 4, a row's place and times are in tables of their own.
func rocpdTrace(t *testing.T, schema int, more ...string) string {
	t.Helper()
	table := func(name string) string { return `"rocpd_` + name + rocmSuffix + `"` }
	statements := []string{
		"CREATE TABLE " + table("string") + " (id INTEGER PRIMARY KEY, string TEXT)",
		"CREATE TABLE " + table("info_node") + " (id INTEGER PRIMARY KEY, hostname TEXT)",
		"INSERT INTO " + table("info_node") + " VALUES (1, 'node7')",
		"CREATE TABLE " + table("info_process") + " (id INTEGER PRIMARY KEY, pid INTEGER, command TEXT)",
		fmt.Sprintf("INSERT INTO %s VALUES (3, %d, '/usr/bin/python3 train.py')", table("info_process"), rocmPID),
		"CREATE TABLE " + table("info_thread") + " (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, name TEXT)",
		fmt.Sprintf("INSERT INTO %s VALUES (5, 3, %d, 'trainer')", table("info_thread"), rocmThread),
		"CREATE TABLE " + table("info_agent") + " (id INTEGER PRIMARY KEY, type TEXT, type_index INTEGER, product_name TEXT)",
		"INSERT INTO " + table("info_agent") + " VALUES (1, 'CPU', 0, 'EPYC'), (2, 'GPU', 0, 'AMD Instinct MI300X')",
		"CREATE TABLE " + table("info_stream") + " (id INTEGER PRIMARY KEY, name TEXT)",
		"INSERT INTO " + table("info_stream") + " VALUES (0, 'default'), (1, 'stream 1')",
		"CREATE TABLE " + table("info_kernel_symbol") + " (id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT)",
		"CREATE TABLE " + table("event") + " (id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, extdata TEXT)",
	}
	for id, k := range rocmKernels {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%d, '%s', '%s')", table("info_kernel_symbol"), id, k[0], k[1]))
	}
	place := `pid INTEGER, tid INTEGER, agent_id INTEGER, stream_id INTEGER, queue_id INTEGER, start BIGINT, "end" BIGINT`
	if schema == 4 {
		place = "track_id INTEGER, start_id INTEGER, end_id INTEGER"
		statements = append(statements,
			"CREATE TABLE "+table("track")+" (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, agent_id INTEGER, stream_id INTEGER, "+
				"queue_id INTEGER)",
			"INSERT INTO "+table("track")+" VALUES (1, 3, 5, 2, 1, 9)",
			"CREATE TABLE "+table("timestamp")+" (id INTEGER PRIMARY KEY, value BIGINT)",
			"CREATE TABLE "+table("info_category")+" (id INTEGER PRIMARY KEY, name TEXT)")
	}
	statements = append(statements,
		"CREATE TABLE "+table("region")+" (id INTEGER PRIMARY KEY, event_id INTEGER, name_id INTEGER, "+place+")",
		"CREATE TABLE "+table("kernel_dispatch")+" (id INTEGER PRIMARY KEY, event_id INTEGER, kernel_id INTEGER, grid_size_x INTEGER, "+
			"grid_size_y INTEGER, grid_size_z INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, "+place+")",
		"CREATE TABLE "+table("memory_copy")+" (id INTEGER PRIMARY KEY, event_id INTEGER, name_id INTEGER, size INTEGER, src_agent_id INTEGER, "+
			"dst_agent_id INTEGER, "+place+")")
	texts := map[string]int{}
	text := func(s string) int {
		if texts[s] == 0 {
			texts[s] = len(texts) + 1
			statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%d, '%s')", table("string"), texts[s], s))
			if schema == 4 {
				statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%d, '%s')", table("info_category"), 100+texts[s], s))
			}
		}
		return texts[s]
	}
	for i, r := range rocmJob() {
		category := text(r.domain)
		at := fmt.Sprintf("3, 5, 2, 1, 9, %d, %d", r.start, r.end)
		if schema == 4 {
			category += 100
			at = fmt.Sprintf("1, %d, %d", 2*i+1, 2*i+2)
			statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%d, %d), (%d, %d)", table("timestamp"), 2*i+1, r.start, 2*i+2,
				r.end))
		}
		detail, _ := json.Marshal(map[string]string{"message": r.message})
		statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%d, %d, %d, '%s')", table("event"), i+1, category, r.correlation,
			detail))
		switch {
		case r.kernel != 0:
			statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%d, %d, %d, 1024, 2, 1, 256, 1, 1, %s)", table("kernel_dispatch"),
				i+1, i+1, r.kernel, at))
		case r.bytes != 0:
			statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%d, %d, %d, %d, 1, 2, %s)", table("memory_copy"), i+1, i+1,
				text(r.name), r.bytes, at))
		default:
			statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%d, %d, %d, %s)", table("region"), i+1, i+1, text(r.name), at))
		}
	}
	for _, statement := range more {
		statements = append(statements, strings.ReplaceAll(statement, "$", rocmSuffix))
	}
	return exportOf(t, statements...)
}

type object = map[string]any

// rocprofJSONTrace is the job in rocprofv3's JSON. What names the records comes before or, in a file that was sorted,
// behind them.
func rocprofJSONTrace(t *testing.T, sorted, alone bool, more object) string {
	t.Helper()
	domains := []string{"NONE", "HIP_RUNTIME_API", "MARKER_CORE_RANGE_API", "MEMORY_COPY", "KERNEL_DISPATCH"}
	operations := make([][]string, len(domains))
	records := object{"hip_api": []any{}, "marker_api": []any{}, "memory_copy": []any{}, "kernel_dispatch": []any{}}
	var markers []any
	for _, r := range rocmJob() {
		var kind int
		for kind = range domains {
			if domains[kind] == r.domain {
				break
			}
		}
		operation := len(operations[kind])
		operations[kind] = append(operations[kind], r.name)
		record := object{"kind": kind, "operation": operation, "thread_id": rocmThread, "start_timestamp": r.start, "end_timestamp": r.end,
			"correlation_id": object{"internal": r.correlation, "external": 0}}
		member := "hip_api"
		switch r.domain {
		case "MARKER_CORE_RANGE_API":
			member = "marker_api"
			markers = append(markers, object{"key": r.correlation, "value": r.message})
		case "MEMORY_COPY":
			member = "memory_copy"
			record["bytes"], record["stream_id"] = r.bytes, object{"handle": 1}
			record["src_agent_id"], record["dst_agent_id"] = object{"handle": 11}, object{"handle": uint64(1) << 63}
		case "KERNEL_DISPATCH":
			member = "kernel_dispatch"
			record["stream_id"] = object{"handle": 1}
			record["dispatch_info"] = object{"kernel_id": r.kernel, "agent_id": object{"handle": uint64(1) << 63}, "queue_id": object{"handle": 9},
				"grid_size": object{"x": 1024, "y": 2, "z": 1}, "workgroup_size": object{"x": 256, "y": 1, "z": 1}}
		}
		records[member] = append(records[member].([]any), record)
	}
	for member, value := range more {
		records[member] = value
	}
	var kinds, symbols []any
	for i, domain := range domains {
		kinds = append(kinds, object{"kind": domain, "operations": operations[i]})
	}
	for id, k := range rocmKernels {
		symbols = append(symbols, object{"kernel_id": id, "kernel_name": k[0], "formatted_kernel_name": k[1]})
	}
	members := []struct {
		name  string
		value any
	}{
		{"metadata", object{"pid": rocmPID, "command": []string{"/usr/bin/python3", "train.py"}, "node": object{"hostname": "node7"}}},
		{"agents", []any{object{"id": object{"handle": 11}, "type": 1, "logical_node_type_id": 0, "product_name": "EPYC"},
			object{"id": object{"handle": uint64(1) << 63}, "type": 2, "logical_node_type_id": 0, "product_name": "AMD Instinct MI300X"}}},
		{"strings", object{"buffer_records": kinds, "marker_api": markers}},
		{"kernel_symbols", symbols},
		{"buffer_records", records},
	}
	var parts []string
	whole := object{}
	for _, m := range members {
		text, err := json.Marshal(m.value)
		if err != nil {
			t.Fatal(err)
		}
		parts, whole[m.name] = append(parts, fmt.Sprintf("%q: %s", m.name, text)), m.value
	}
	process := "{" + strings.Join(parts, ",") + "}"
	if sorted {
		text, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		process = string(text)
	}
	if !alone {
		process = "[" + process + "]"
	}
	return file(t, "4242_results.json", `{"rocprofiler-sdk-tool": `+process+"}")
}

func TestATraceOfRocprofIsTheSameInEachForm(t *testing.T) {
	for name, path := range map[string]string{
		"rocpd, schema 3":          rocpdTrace(t, 3),
		"rocpd, schema 4":          rocpdTrace(t, 4),
		"JSON":                     rocprofJSONTrace(t, false, false, nil),
		"JSON, sorted":             rocprofJSONTrace(t, true, false, nil),
		"JSON of an early release": rocprofJSONTrace(t, false, true, nil),
	} {
		t.Run(name, func(t *testing.T) {
			db, summary := importFiles(t, path)
			if len(summary.Warnings) != 0 {
				t.Error(summary.Warnings)
			}
			answers(t, db, map[string]string{
				"SELECT string_agg(name, ', ' ORDER BY ts_ns) FROM span WHERE layer = 'scope'": "step 0, step 1",
				"SELECT concat_ws(' ', source, device_name, host) FROM session": "imported from rocprofv3 AMD " +
					"Instinct MI300X node7",
				"SELECT concat_ws(' ', ns_pid, command) FROM process":                                                  "4242 python3",
				"SELECT string_agg(DISTINCT concat_ws(' ', tid, runtime), ',') FROM span WHERE layer = 'runtime'":      "4243 hip",
				"SELECT string_agg(DISTINCT category, ' ' ORDER BY category) FROM span WHERE layer = 'runtime'":        "copy launch sync",
				"SELECT concat_ws(' ', count(*), count(launch_id), sum(duration_ns)) FROM span WHERE layer = 'device'": "6 6 1240000",
				"SELECT string_agg(DISTINCT concat_ws(' ', device_id, stream), ',') FROM span WHERE layer = 'device'":  "0 1",
				"SELECT string_agg(DISTINCT concat_ws(' ', category, name, bytes, direction), ', ' ORDER BY concat_ws(' ', category, name, bytes, " +
					"direction)) FROM span WHERE layer = 'device'": "collective ncclDevKernel_Generic(void*), copy Memcpy HtoD 4096 host_to_device, " +
					"kernel gemm(float*)",
				"SELECT string_agg(DISTINCT concat_ws(' ', symbol, grid_x, grid_y, block_x, work_x), ', ') FROM span WHERE " +
					"category = 'kernel'": "_Z4gemmPf 4 2 256 1024",
				"SELECT count(*) FROM span l JOIN span s ON s.span_id = l.parent_id AND s.layer = 'scope' WHERE l.category = 'launch'": "4",
				"SELECT string_agg(DISTINCT l.name, ' ') FROM span d JOIN span l ON l.span_id = d.launch_id WHERE " +
					"d.category = 'kernel'": "hipLaunchKernel",
			})
		})
	}
}

// What is not read of a trace of rocprofv3 is counted, and a file that ends early is read up to there.
func TestWhatATraceOfRocprofLeavesIsCounted(t *testing.T) {
	for name, c := range map[string]struct{ path, says string }{
		"allocations in a database": {rocpdTrace(t, 3, `CREATE TABLE "rocpd_memory_allocate$" (id INTEGER PRIMARY KEY, size INTEGER)`,
			`INSERT INTO "rocpd_memory_allocate$" VALUES (1, 5), (2, 6)`), "2 rows of table rocpd_memory_allocate" + rocmSuffix +
			" are not imported"},
		"rows without a time": {rocpdTrace(t, 4, `DELETE FROM "rocpd_timestamp$"
			WHERE id = 1`), "1 rows are marks without a length, or have no time"},
		"allocations in JSON": {rocprofJSONTrace(t, false, false, object{"memory_allocation": []any{object{"size": 1}, 5, []any{}}}),
			"3 records of memory_allocation are not imported"},
		"records that are none": {rocprofJSONTrace(t, false, false, object{"hsa_api": []any{object{"kind": "x"}, object{"kind": -1}}}),
			"2 records of hsa_api are not imported"},
	} {
		_, summary := importFiles(t, c.path)
		if len(summary.Warnings) != 1 || !strings.Contains(summary.Warnings[0].Detail, c.says) {
			t.Errorf("%s: %v, want %s", name, summary.Warnings, c.says)
		}
	}
}
