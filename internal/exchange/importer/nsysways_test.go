package importer

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

// What an export of Nsight Systems comes to: rows and times by device and kind, and who
// launched what, in which range.
const nsysFigures = `(WITH s AS (FROM span)
	SELECT string_agg(line, chr(10) ORDER BY line) FROM (
		SELECT concat_ws(' ', layer, category, device_id, stream, count(*), sum(duration_ns), count(launch_id), count(parent_id), sum(bytes), min(ts_ns) - (SELECT min(ts_ns) FROM span)) AS line
		FROM s GROUP BY layer, category, device_id, stream
		UNION ALL
		SELECT concat_ws(' ', 'in', p.layer, p.name, count(*), sum(d.duration_ns)) FROM s d JOIN s l ON l.span_id = d.launch_id JOIN s p ON p.span_id = l.parent_id
		GROUP BY p.layer, p.name
		UNION ALL
		SELECT concat_ws(' ', 'of', p.ns_pid, count(*)) FROM s JOIN process p USING (session_id, pid) GROUP BY p.ns_pid))`

// Nsight's versions write tables and columns in other ways, and devices have other names.
var nsysWays = map[string][]string{
	"kernels of AMD": {
		`UPDATE StringIds SET value = 'Cijk_Ailk_Bljk_BBS_BH_MT128x128x16_gfx942_' || id WHERE id IN (SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL) AND value NOT LIKE '%nccl%'`,
	},
	"texts in ranges": {`UPDATE NVTX_EVENTS SET text = (SELECT value FROM StringIds WHERE id = textId), textId = NULL WHERE textId IS NOT NULL`},
	"texts of ranges apart": {
		`INSERT INTO StringIds SELECT 1000000 + row_number() OVER (), text FROM (SELECT DISTINCT text FROM NVTX_EVENTS WHERE text IS NOT NULL)`,
		`UPDATE NVTX_EVENTS SET textId = (SELECT max(id) FROM StringIds WHERE value = text AND id >= 1000000), text = NULL`,
	},
	"rows in no order": {
		`CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY (start * 2654435761) % 1000003`, `DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL`,
		`ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL`,
		`CREATE TABLE r AS SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY (start * 2654435761) % 1000003`, `DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME`,
		`ALTER TABLE r RENAME TO CUPTI_ACTIVITY_KIND_RUNTIME`,
		`CREATE TABLE n AS SELECT * FROM NVTX_EVENTS ORDER BY (start * 2654435761) % 1000003`, `DROP TABLE NVTX_EVENTS`, `ALTER TABLE n RENAME TO NVTX_EVENTS`,
	},
	"short names only": {`UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 0, mangledName = NULL`},
	"columns missing": {
		`ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN mangledName`, `ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN dynamicSharedMemory`,
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
