package importer

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What an export of Nsight Systems comes to: rows and times by device and kind, and who
// launched what, in which range.
const nsysFigures = `(WITH s AS (FROM span)
	SELECT string_agg(line, chr(10) ORDER BY line) FROM (
		SELECT concat_ws(' ', layer, category, device_id, stream, count(*), sum(duration_ns), count(launch_id), count(parent_id), sum(bytes),
		min(ts_ns) - (SELECT min(ts_ns) FROM span)) AS line
		FROM s GROUP BY layer, category, device_id, stream
		UNION ALL
		SELECT concat_ws(' ', 'in', p.layer, p.name, count(*), sum(d.duration_ns)) FROM s d JOIN s l ON l.span_id = d.launch_id
		JOIN s p ON p.span_id = l.parent_id
		GROUP BY p.layer, p.name
		UNION ALL
		SELECT concat_ws(' ', 'of', p.ns_pid, count(*)) FROM s JOIN process p USING (session_id, pid) GROUP BY p.ns_pid))`

// Nsight's versions write tables and columns in other ways, and devices have other names.
var nsysWays = map[string][]string{
	"kernels of AMD": {
		`UPDATE StringIds SET value = 'Cijk_Ailk_Bljk_BBS_BH_MT128x128x16_gfx942_' || id
			WHERE id IN (SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL) AND value NOT LIKE '%nccl%'`,
	},
	"texts in ranges": {`UPDATE NVTX_EVENTS SET text = (SELECT value FROM StringIds WHERE id = textId), textId = NULL
		WHERE textId IS NOT NULL`},
	"texts of ranges apart": {
		`INSERT INTO StringIds SELECT 1000000 + row_number() OVER (), text FROM (SELECT DISTINCT text FROM NVTX_EVENTS WHERE text IS NOT NULL)`,
		`UPDATE NVTX_EVENTS SET textId = (SELECT max(id) FROM StringIds WHERE value = text AND id >= 1000000), text = NULL`,
	},
	"rows in no order": {
		`CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL
			ORDER BY (start * 2654435761) % 1000003`, `DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL`,
		`ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL`,
		`CREATE TABLE r AS SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME
			ORDER BY (start * 2654435761) % 1000003`, `DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME`,
		`ALTER TABLE r RENAME TO CUPTI_ACTIVITY_KIND_RUNTIME`,
		`CREATE TABLE n AS SELECT * FROM NVTX_EVENTS
			ORDER BY (start * 2654435761) % 1000003`, `DROP TABLE NVTX_EVENTS`, `ALTER TABLE n RENAME TO NVTX_EVENTS`,
	},
	"short names only": {`UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 0, mangledName = NULL`},
	"columns missing": {
		`ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN mangledName`,
		`ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN dynamicSharedMemory`,
		`ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN greenContextId`, `ALTER TABLE NVTX_EVENTS DROP COLUMN eventType`,
	},
	"another clock":      {`UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + 86400000000000`},
	"no clock":           {`DROP TABLE TARGET_INFO_SESSION_START_TIME`},
	"nothing of targets": {`DROP TABLE TARGET_INFO_SYSTEM_ENV`, `DROP TABLE PROCESSES`, `DROP TABLE ThreadNames`},
}

// changed is a copy of an export after some statements.
func changed(t *testing.T, statements ...string) string {
	t.Helper()
	data, err := os.ReadFile(shared(t, "nsys/h100_2gpu_1s.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "export.sqlite")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return path
}

func TestOtherWaysOfWritingAnExportOfNsightChangeNoFigure(t *testing.T) {
	if testing.Short() {
		t.Skip("ten imports")
	}
	db, _ := importFiles(t, changed(t))
	want := one(t, db, nsysFigures)
	for name, statements := range nsysWays {
		db, _ := importFiles(t, changed(t, statements...))
		if got := one(t, db, nsysFigures); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// export is a small export of Nsight Systems: twelve launches of a kernel in an operator each, in tables of some names.
func export(t *testing.T, kernels, ranges string, more ...string) string {
	t.Helper()
	statements := []string{
		`CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT)`,
		`INSERT INTO StringIds VALUES (1, 'gemm(float*)'), (2, 'aten::mm, op_id = 3, sizes = [[2, 3], [3, 4]]'), (3, 'cudaLaunchKernel_v7000')`,
		`CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER)`,
		`CREATE TABLE ` + kernels +
			`(start INTEGER, "end" INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER)`,
		`CREATE TABLE ` + ranges + `(start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER)`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
			INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1000000 * i + 10000, 1000000 * i + 15000, 5100 << 24 | 5100, i, 3, 0 FROM n`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
			INSERT INTO ` + kernels + ` SELECT 1000000 * i + 20000, 1000000 * i + 320000, 0, 7, i, 5100 << 24, 1 FROM n`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
			INSERT INTO ` + ranges + ` SELECT 1000000 * i, 1000000 * i + 50000, 59, NULL, 5100 << 24 | 5100, 2 FROM n`,
	}
	return exportOf(t, append(statements, more...)...)
}

func TestTablesOfNsightMayHaveAVersion(t *testing.T) {
	for _, names := range [][2]string{
		{"CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"}, {"CUPTI_ACTIVITY_KIND_KERNEL_V3", "NVTX_EVENTS_V2"},
		{"CUPTI_ACTIVITY_KIND_KERNEL_v10", "nvtx_events_v2"}, {"cupti_activity_kind_kernel", "NVTX_EVENTS_V12"},
	} {
		db, summary := importFiles(t, export(t, names[0], names[1]))
		answers(t, db, map[string]string{
			"SELECT concat_ws(' ', count(*), sum(duration_ns), count(launch_id), any_value(name)) FROM span WHERE " +
				"layer = 'device'": "12 3600000 12 gemm(float*)",
			"SELECT concat_ws(' ', count(*), any_value(name), any_value(input_dims)) FROM span WHERE layer = 'op'": "12 aten::mm [[2, 3], [3, 4]]",
			"SELECT count(*) FROM span l JOIN span o ON o.span_id = l.parent_id AND o.layer = 'op'":                "12",
		})
		if len(summary.Warnings) != 0 {
			t.Errorf("%v: %v", names, summary.Warnings)
		}
	}
}

// Tables of events that are not known, or without a time, are named with their rows.
func TestTablesOfNsightThatAreNotReadAreNamed(t *testing.T) {
	_, summary := importFiles(t, export(t, "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS",
		`CREATE TABLE NEW_ENGINE_EVENTS_V2(start INTEGER, value INTEGER)`, `INSERT INTO NEW_ENGINE_EVENTS_V2 VALUES (1, 2), (3, 4), (5, 6)`,
		`CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(began INTEGER, bytes INTEGER)`, `INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 2)`,
		`CREATE TABLE EMPTY_EVENTS(start INTEGER)`, `CREATE TABLE TARGET_INFO_SOMETHING(timestamp INTEGER)`,
		`INSERT INTO TARGET_INFO_SOMETHING VALUES (1)`))
	var named []string
	for _, w := range summary.Warnings {
		named = append(named, w.Detail)
	}
	if got, want := strings.Join(named, "; "), "1 rows of table CUPTI_ACTIVITY_KIND_MEMCPY are not imported; 3 rows of table "+
		"NEW_ENGINE_EVENTS_V2 are not imported"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
