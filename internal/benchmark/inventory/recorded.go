package inventory

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/ebpfprof/ebpfprof/internal/dataset"
)

// recordedSQL are facts that a recording has of its job: a key and a value each.
var recordedSQL = []string{
	`SELECT 'python', string_agg(DISTINCT python_version, ', ' ORDER BY python_version) FROM process WHERE python_version IS NOT NULL`,
	`SELECT 'framework', string_agg(DISTINCT framework || coalesce(' ' || framework_version, ''), ', ') FROM process
		WHERE framework IS NOT NULL`,
	`SELECT 'ranks', max(world_size)::VARCHAR FROM process`,
	`SELECT 'device', any_value(device_name) FROM session`,
	`SELECT 'recorded with', any_value('ebpfprof ' || tool_version || ', level ' || level) FROM session`,
	// Libraries by file name: it has the version where the maker puts it there.
	`SELECT 'collectives', string_agg(DISTINCT name, ', ' ORDER BY name) FROM (SELECT regexp_extract(path, '[^/]*$') AS name FROM library)
	   WHERE regexp_matches(name, '^lib(nccl|rccl|mpi|gloo|msccl)[.-]')`,
	`SELECT 'accelerator libraries', string_agg(DISTINCT name, ', ' ORDER BY name) FROM (SELECT regexp_extract(path, '[^/]*$') AS name
		FROM library)
	   WHERE regexp_matches(name, '^lib(cudart|amdhip64|cuda|cudnn|nrt|ze_loader)[.-]')`,
	`SELECT 'launcher', string_agg(DISTINCT l, ', ' ORDER BY l)
		FROM (SELECT regexp_extract(command, '(torchrun|torch.distributed.run|accelerate|deepspeed|mpirun|srun)', 1) AS l FROM process)
		WHERE l <> ''`,
	// Each file system that data came from, with its type: it outweighs a newer device.
	`SELECT 'file systems', string_agg(DISTINCT file_system || ' at ' || mount, ', ' ORDER BY file_system || ' at ' || mount) FROM io
	   WHERE kind = 'file' AND operation IN ('read', 'fault') AND mount IS NOT NULL AND file_system NOT IN ('proc', 'sysfs', 'cgroup2',
	'devtmpfs', 'devpts')`,
}

// Recorded reads what a recording knows of its job.
func Recorded(ctx context.Context, db *dataset.DB) (v Inventory, err error) {
	for _, query := range recordedSQL {
		err := db.Each(ctx, query, func(row []driver.Value) error {
			key, _ := row[0].(string)
			value, _ := row[1].(string)
			v.add(key, value)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading what the job ran with: %w", err)
		}
	}
	return v, nil
}
