-- Views of an ebpfprof dataset (schema 1.1.0). From the dataset's directory:
--   duckdb -init views.sql
-- Each table keeps its name; ts is ts_ns as a timestamp, in UTC.

-- A row is one recording on one host.
CREATE OR REPLACE VIEW session AS
SELECT session_id, schema_version, tool_version, host, boot_id, kernel,
  cpu_model, started_ns, ended_ns, clock_offset_ns, level, command_line,
  duration_ns, follow_children, probe_groups, budget_percent, frequency_hz, off_cpu_threshold_ns,
  max_frames, verify_stacks, buffer_bytes, counters_period_ns, rotation_ns, attach_with,
  redacted, exclude, source, device_name, hits, overhead_ns,
  overhead_percent, budget_rule,
  * EXCLUDE (session_id, schema_version, tool_version, host, boot_id, kernel, cpu_model, started_ns, ended_ns, clock_offset_ns, level, command_line, duration_ns, follow_children, probe_groups, budget_percent, frequency_hz, off_cpu_threshold_ns, max_frames, verify_stacks, buffer_bytes, counters_period_ns, rotation_ns, attach_with, redacted, exclude, source, device_name, hits, overhead_ns, overhead_percent, budget_rule)
FROM read_parquet('session/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one column of one table: the dataset describes itself.
CREATE OR REPLACE VIEW schema_field AS
SELECT session_id, table_name, column_name, type, unit, nullable,
  field_id, description,
  * EXCLUDE (session_id, table_name, column_name, type, unit, nullable, field_id, description)
FROM read_parquet('schema_field/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one traced process.
CREATE OR REPLACE VIEW process AS
SELECT session_id, process_id, pid, ns_pid, parent_pid, started_ns,
  ended_ns, exe, command, container_id, cgroup, job_id,
  rank, local_rank, world_size, python_version, framework, framework_version,
  exit_code, exit_signal,
  * EXCLUDE (session_id, process_id, pid, ns_pid, parent_pid, started_ns, ended_ns, exe, command, container_id, cgroup, job_id, rank, local_rank, world_size, python_version, framework, framework_version, exit_code, exit_signal)
FROM read_parquet('process/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one thread of a traced process that had events.
CREATE OR REPLACE VIEW thread AS
SELECT session_id, pid, tid, name, role, started_ns,
  ended_ns,
  * EXCLUDE (session_id, pid, tid, name, role, started_ns, ended_ns)
FROM read_parquet('thread/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one file mapped with execute permission.
CREATE OR REPLACE VIEW library AS
SELECT session_id, pid, path, build_id, start_address, end_address,
  file_offset, deleted,
  * EXCLUDE (session_id, pid, path, build_id, start_address, end_address, file_offset, deleted)
FROM read_parquet('library/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one planned probe of one process.
CREATE OR REPLACE VIEW probe AS
SELECT session_id, pid, library, symbol, layer, kind,
  site_offset, site_cost, attached, reason, hits, thinned,
  lost, name, first_in_ns,
  * EXCLUDE (session_id, pid, library, symbol, layer, kind, site_offset, site_cost, attached, reason, hits, thinned, lost, name, first_in_ns)
FROM read_parquet('probe/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is something with a beginning: an operator, a scope, a backward pass, a collective, a call into an accelerator runtime.
CREATE OR REPLACE VIEW span AS
SELECT session_id, span_id, parent_id, ts_ns, make_timestamp_ns(ts_ns) AS ts, duration_ns,
  end_method, pid, tid, layer, category, runtime,
  name, status, weight, sequence_number, python_stack_id, python_stack_source,
  slice_id, slice_step, stack_id, device_id, context, stream,
  correlation_id, bytes, direction, work_x, work_y, work_z,
  grid_x, grid_y, grid_z, block_x, block_y, block_z,
  shared_bytes, dtype, element_count, communicator, peer_rank, error_code,
  device_time_lo_ns, device_time_hi_ns, device_time_method, device_busy_lo_ns, name_source, symbol,
  communicator_handle, rank, ranks, group_depth, handle, device_count,
  argument_count, input_dims, input_types, input_strides, input_bytes, input_devices,
  flops, flops_causal, bytes_moved, shape_source, file_system, mount,
  path, waited_ns, fused_operators, launch_id, wait_stream, wait_correlation_id,
  * EXCLUDE (session_id, span_id, parent_id, ts_ns, duration_ns, end_method, pid, tid, layer, category, runtime, name, status, weight, sequence_number, python_stack_id, python_stack_source, slice_id, slice_step, stack_id, device_id, context, stream, correlation_id, bytes, direction, work_x, work_y, work_z, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, dtype, element_count, communicator, peer_rank, error_code, device_time_lo_ns, device_time_hi_ns, device_time_method, device_busy_lo_ns, name_source, symbol, communicator_handle, rank, ranks, group_depth, handle, device_count, argument_count, input_dims, input_types, input_strides, input_bytes, input_devices, flops, flops_causal, bytes_moved, shape_source, file_system, mount, path, waited_ns, fused_operators, launch_id, wait_stream, wait_correlation_id)
FROM read_parquet('span/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one look at a thread.
CREATE OR REPLACE VIEW sample AS
SELECT session_id, ts_ns, make_timestamp_ns(ts_ns) AS ts, pid, tid, cpu,
  state, cause, weight_ns, stack_id, span_id, syscall,
  waker_tid, holds_gil, in_gc, ready_ns,
  * EXCLUDE (session_id, ts_ns, pid, tid, cpu, state, cause, weight_ns, stack_id, span_id, syscall, waker_tid, holds_gil, in_gc, ready_ns)
FROM read_parquet('sample/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one distinct call stack.
CREATE OR REPLACE VIEW stack AS
SELECT session_id, stack_id, frames, folded, status, inferred_frames,
  * EXCLUDE (session_id, stack_id, frames, folded, status, inferred_frames)
FROM read_parquet('stack/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one allocation or free.
CREATE OR REPLACE VIEW memory AS
SELECT session_id, ts_ns, make_timestamp_ns(ts_ns) AS ts, pid, tid, space,
  level, device_id, action, address, bytes, duration_ns,
  total_allocated_bytes, total_reserved_bytes, stack_id, stack_source, python_stack_id, python_stack_source,
  span_id, weight, pool, graph_exec, slice_id, slice_step,
  * EXCLUDE (session_id, ts_ns, pid, tid, space, level, device_id, action, address, bytes, duration_ns, total_allocated_bytes, total_reserved_bytes, stack_id, stack_source, python_stack_id, python_stack_source, span_id, weight, pool, graph_exec, slice_id, slice_step)
FROM read_parquet('memory/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one interval in which a group of probes recorded, and the stretch of the run that it stands for.
CREATE OR REPLACE VIEW slice AS
SELECT session_id, slice_id, pid, probe_group, begin_ns, end_ns,
  from_ns, to_ns, phase, unit, recorded, represented,
  steps,
  * EXCLUDE (session_id, slice_id, pid, probe_group, begin_ns, end_ns, from_ns, to_ns, phase, unit, recorded, represented, steps)
FROM read_parquet('slice/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is a call of torch.distributed that has begun and not ended: a collective that its group has not finished (category work), a thread that waits for one (wait), a call that asks for one and has not returned (issue).
CREATE OR REPLACE VIEW open_call AS
SELECT session_id, ts_ns, make_timestamp_ns(ts_ns) AS ts, seen_ns, pid, tid,
  layer, category, runtime, name, span_id, communicator,
  communicator_handle, rank, ranks, sequence_number, completed_number, bytes,
  dtype, element_count, peer_rank, stack_id, python_stack_id,
  * EXCLUDE (session_id, ts_ns, seen_ns, pid, tid, layer, category, runtime, name, span_id, communicator, communicator_handle, rank, ranks, sequence_number, completed_number, bytes, dtype, element_count, peer_rank, stack_id, python_stack_id)
FROM read_parquet('open_call/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is a group of ranks of torch.distributed as one process knows it, and how far it has come.
CREATE OR REPLACE VIEW communicator AS
SELECT session_id, pid, communicator, communicator_handle, runtime, name,
  description, rank, ranks, issued_number, issued_name, issued_ns,
  completed_number, completed_ns,
  * EXCLUDE (session_id, pid, communicator, communicator_handle, runtime, name, description, rank, ranks, issued_number, issued_name, issued_ns, completed_number, completed_ns)
FROM read_parquet('communicator/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is a thread that did not run when it was looked at, and the stack on which it stood.
CREATE OR REPLACE VIEW still_thread AS
SELECT session_id, seen_ns, since_ns, pid, tid, syscall,
  stack_id, state,
  * EXCLUDE (session_id, seen_ns, since_ns, pid, tid, syscall, stack_id, state)
FROM read_parquet('still_thread/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is what one thread has read or written of one kind, in a second or for a part of one.
CREATE OR REPLACE VIEW io AS
SELECT session_id, ts_ns, make_timestamp_ns(ts_ns) AS ts, end_ns, pid, tid,
  operation, kind, file_system, mount, device, calls,
  failed, bytes, duration_ns, waited_ns, path,
  * EXCLUDE (session_id, ts_ns, end_ns, pid, tid, operation, kind, file_system, mount, device, calls, failed, bytes, duration_ns, waited_ns, path)
FROM read_parquet('io/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one reading of one counter of the machine or a device.
CREATE OR REPLACE VIEW counter AS
SELECT session_id, ts_ns, make_timestamp_ns(ts_ns) AS ts, period_ns, source, device_id,
  device, scope, pid, name, kind, unit,
  value,
  * EXCLUDE (session_id, ts_ns, period_ns, source, device_id, device, scope, pid, name, kind, unit, value)
FROM read_parquet('counter/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is an edge between two spans.
CREATE OR REPLACE VIEW flow AS
SELECT session_id, ts_ns, make_timestamp_ns(ts_ns) AS ts, from_span_id, to_span_id, kind,
  method,
  * EXCLUDE (session_id, ts_ns, from_span_id, to_span_id, kind, method)
FROM read_parquet('flow/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is something to know before trusting the rest.
CREATE OR REPLACE VIEW warning AS
SELECT session_id, ts_ns, make_timestamp_ns(ts_ns) AS ts, kind, source, count,
  detail,
  * EXCLUDE (session_id, ts_ns, kind, source, count, detail)
FROM read_parquet('warning/**/*.parquet', hive_partitioning = true, union_by_name = true);

-- A row is one name of spans, with how often it was called and how long that took, and 95 % intervals of both.
CREATE OR REPLACE VIEW operator_estimate AS
WITH slices AS (
  -- n whole steps recorded of l, of which it saw so many with parts of others; where a slice was
  -- counted in another unit, a step is one of its equal pieces. What it passed by less of than of a
  -- step, it stands for by itself.
  SELECT *, l - saw < 1 AS itself
  FROM (
    SELECT session_id, slice_id, pid, probe_group, phase, begin_ns, steps AS k, unit = 'steps' AS of_steps, unit = 'time' AS of_time,
      CASE WHEN unit <> 'steps' THEN greatest(steps, 1) WHEN steps > 0 THEN least(steps, recorded) ELSE recorded END AS n,
      CASE WHEN unit = 'steps' THEN recorded ELSE greatest(steps, 1) END AS saw,
      CASE WHEN unit = 'steps' THEN represented ELSE represented * greatest(steps, 1) / recorded END AS l
    FROM slice
    WHERE recorded > 0
  ) AS t
), unseen AS (
  SELECT session_id, pid, probe_group, phase, true AS unseen
  FROM slice
  WHERE recorded <= 0 AND represented > 0
  GROUP BY ALL
), calls AS (
  SELECT session_id, slice_id, slice_step, layer, name, count(*) AS seen, sum(weight) AS calls,
    coalesce(sum(duration_ns), 0) AS seen_ns, coalesce(sum(duration_ns * weight), 0) AS ns
  FROM span
  GROUP BY ALL
), steps AS (
  -- The sum of the squares of the differences between neighbouring steps is
  -- sum(edges * y * y - 2 * y * before): steps without a call need no row.
  SELECT c.session_id, c.slice_id, c.layer, c.name, CAST(seen AS DOUBLE) AS y, CAST(seen_ns AS DOUBLE) AS y_ns,
    CASE WHEN k < 2 THEN 0 WHEN slice_step IN (1, k) THEN 1 ELSE 2 END AS edges,
    CASE WHEN lag(slice_step) OVER w = slice_step - 1 THEN lag(seen) OVER w ELSE 0 END AS y_before,
    CASE WHEN lag(slice_step) OVER w = slice_step - 1 THEN lag(CAST(seen_ns AS DOUBLE)) OVER w ELSE 0 END AS y_ns_before
  FROM calls AS c
  JOIN slices USING (session_id, slice_id)
  WHERE slice_step IS NOT NULL
  WINDOW w AS (PARTITION BY c.session_id, c.slice_id, c.layer, c.name ORDER BY slice_step)
), within_slice AS (
  SELECT session_id, slice_id, layer, name, sum(y) AS whole, sum(y_ns) AS whole_ns,
    sum(edges * y * y - 2 * y * y_before) AS squares, sum(edges * y_ns * y_ns - 2 * y_ns * y_ns_before) AS squares_ns
  FROM steps
  GROUP BY ALL
), per_slice AS (
  SELECT session_id, slice_id, layer, name, sum(seen) AS seen, sum(calls) AS calls, sum(seen_ns) AS seen_ns, sum(ns) AS ns
  FROM calls
  WHERE slice_id IS NOT NULL
  GROUP BY ALL
), names AS (
  SELECT DISTINCT session_id, pid, probe_group, phase, layer, name
  FROM per_slice
  JOIN slices USING (session_id, slice_id)
), rates AS (
  -- Of the probes of a name that were first in at one time: calls a step, since then.
  SELECT p.session_id, layer, name, first_in_ns, any_value(hits) / sum(n) AS rate
  FROM (
    SELECT session_id, layer, name, coalesce(first_in_ns, 0) AS first_in_ns, CAST(sum(hits) AS DOUBLE) AS hits
    FROM probe
    WHERE attached AND hits > 0 AND name IS NOT NULL
    GROUP BY ALL
  ) AS p
  JOIN (SELECT DISTINCT session_id, probe_group, layer, name FROM names) AS g USING (session_id, layer, name)
  JOIN slices AS s ON s.session_id = p.session_id AND s.probe_group = g.probe_group AND s.begin_ns >= p.first_in_ns
  GROUP BY ALL
), late AS (
  -- From when on nearly all of a name was seen: a slice that began before a probe of more than a
  -- twentieth of its calls was in tells nothing of it as a whole, unless those that began later are
  -- too few in its phase to tell a variance: another phase may call another overload of the name.
  SELECT session_id, layer, name, min(first_in_ns) AS first_in_ns, min(first_in_ns) FILTER (so_far >= 0.95 * of_all) AS whole_from_ns
  FROM (
    SELECT *, sum(rate) OVER (PARTITION BY session_id, layer, name ORDER BY first_in_ns) AS so_far,
      sum(rate) OVER (PARTITION BY session_id, layer, name) AS of_all
    FROM rates
  ) AS t
  GROUP BY ALL
), seen_in AS (
  -- The slices that a name could have rows in. Where some of its probes were not in yet it tells
  -- nothing of the name as a whole; where they were for the first time its rows stand for more than
  -- the slice does: the calls since it was known that there were none.
  SELECT n.session_id, n.pid, n.probe_group, n.phase, n.layer, n.name, s.begin_ns, s.slice_id, s.n, s.saw, s.l, s.k, s.of_steps, s.of_time, s.itself, first_in_ns,
    coalesce(begin_ns < whole_from_ns
      AND (count(*) FILTER (begin_ns >= whole_from_ns) OVER stratum > 1 OR max(k) FILTER (begin_ns >= whole_from_ns) OVER stratum > 1), false) AS partly,
    coalesce(min(begin_ns) OVER stratum < whole_from_ns AND begin_ns IN (min(begin_ns) FILTER (begin_ns >= first_in_ns) OVER stratum,
      min(begin_ns) FILTER (begin_ns >= whole_from_ns) OVER stratum), false) AS first
  FROM names AS n
  JOIN slices AS s USING (session_id, pid, probe_group, phase)
  LEFT JOIN late USING (session_id, layer, name)
  WINDOW stratum AS (PARTITION BY n.session_id, n.pid, n.probe_group, n.phase, n.layer, n.name)
), means AS (
  -- A slice in which a name has no row had none of its calls. A slice of parts of steps has the
  -- mean that its weights say. Without a mean a slice saw a part of the name's calls.
  SELECT session_id, pid, probe_group, phase, layer, name, begin_ns, slice_id, n, saw, l, k, of_time, itself, first,
    coalesce(seen, 0) AS seen, coalesce(calls, 0) AS calls, coalesce(seen_ns, 0) AS seen_ns, coalesce(ns, 0) AS ns,
    CASE WHEN partly THEN NULL WHEN k > 0 THEN coalesce(whole, 0) / k ELSE coalesce(calls, 0) / l END AS y,
    CASE WHEN partly THEN NULL WHEN k > 0 THEN coalesce(whole_ns, 0) / k ELSE coalesce(ns, 0) / l END AS y_ns,
    CASE WHEN partly THEN 0 ELSE coalesce(squares, 0) END AS squares,
    CASE WHEN partly THEN 0 ELSE coalesce(squares_ns, 0) END AS squares_ns,
    -- Of the stretch, what the name's rows stand for: where that is no other for each place in a
    -- step their weights say so.
    CASE WHEN of_steps AND NOT first THEN l WHEN seen > 0 AND NOT of_steps THEN n * calls / seen
      WHEN whole > 0 THEN greatest(saw, k * calls / whole) ELSE l END AS of_l
  FROM seen_in
  LEFT JOIN per_slice USING (session_id, slice_id, layer, name)
  LEFT JOIN within_slice USING (session_id, slice_id, layer, name)
  WHERE seen IS NOT NULL OR NOT partly AND begin_ns >= coalesce(first_in_ns, 0)
), telling AS (
  -- A slice that stands for itself tells nothing of the others (a job's first step, which has no
  -- momentum yet, is in such a one), unless those are too few to tell a variance.
  SELECT *, y IS NOT NULL AND NOT (itself
      AND (count(y) FILTER (NOT itself) OVER stratum > 1 OR coalesce(max(k) FILTER (y IS NOT NULL AND NOT itself) OVER stratum, 0) > 1)) AS tells
  FROM means
  WINDOW stratum AS (PARTITION BY session_id, pid, probe_group, phase, layer, name)
), neighbours AS (
  SELECT *,
    power(y - lag(y) OVER w, 2) / (1 / n + 1 / lag(n) OVER w) AS between_squares,
    power(y_ns - lag(y_ns) OVER w, 2) / (1 / n + 1 / lag(n) OVER w) AS between_squares_ns
  FROM telling
  WINDOW w AS (PARTITION BY session_id, pid, probe_group, phase, layer, name, tells ORDER BY begin_ns, slice_id)
), sums AS (
  SELECT session_id, pid, probe_group, phase, layer, name,
    sum(seen) AS seen, sum(calls) AS calls, sum(seen_ns) AS seen_ns, sum(ns) AS ns,
    sum(CASE WHEN y IS NULL OR first THEN calls ELSE of_l * y END) AS whole,
    sum(CASE WHEN y_ns IS NULL OR first THEN ns ELSE of_l * y_ns END) AS whole_ns,
    count(y) FILTER (tells) AS m, coalesce(sum(greatest(k - 1, 0)) FILTER (tells), 0) AS pairs,
    sum(of_l * greatest(of_l - saw, 0) / n) AS spread,
    -- In a time without steps a pause is all of one kind, and may be of another than what the slices
    -- saw: by the rule of succession, where m of them saw one, in one case of m + 2. All of the
    -- pauses or a part: two thirds of that variance hold the truth of simulated jobs.
    CASE WHEN bool_or(of_time) THEN (count(y) FILTER (tells) + 1) / (1.5 * power(count(y) FILTER (tells) + 2, 2)) ELSE 0 END AS unlike,
    coalesce(sum(greatest(of_l - saw, 0) * y), 0) AS passed, coalesce(sum(greatest(of_l - saw, 0) * y_ns), 0) AS passed_ns,
    -- When the job began to call it, before its probe was in, is known only about.
    coalesce(sum(greatest(of_l - l, 0) * y) FILTER (first), 0) / 2 AS begun, coalesce(sum(greatest(of_l - l, 0) * y_ns) FILTER (first), 0) / 2 AS begun_ns,
    sum(between_squares) FILTER (tells) AS b, sum(between_squares_ns) FILTER (tells) AS b_ns,
    greatest(coalesce(sum(squares) FILTER (tells), 0), 0) AS w, greatest(coalesce(sum(squares_ns) FILTER (tells), 0), 0) AS w_ns
  FROM neighbours
  GROUP BY ALL
), variances AS (
  SELECT session_id, layer, name, seen, calls, seen_ns, ns, whole, whole_ns, begun, begun_ns,
    CASE WHEN m > 1 THEN 2.0 * power(m - 1, 2) / (3 * m - 4) ELSE 0 END
      + CASE WHEN pairs > 0 THEN 2.0 * power(pairs, 2) / (3 * pairs - 1) ELSE 0 END AS freedom,
    CASE WHEN unseen THEN NULL WHEN spread = 0 THEN 0
      ELSE spread * greatest(b / nullif(m - 1, 0), w / nullif(2.0 * pairs, 0)) + unlike * passed * passed END AS v,
    CASE WHEN unseen THEN NULL WHEN spread = 0 THEN 0
      ELSE spread * greatest(b_ns / nullif(m - 1, 0), w_ns / nullif(2.0 * pairs, 0)) + unlike * passed_ns * passed_ns END AS v_ns
  FROM sums
  LEFT JOIN unseen USING (session_id, pid, probe_group, phase)
  UNION ALL
  -- Rows of no slice: every call was recorded, or a version that had no slices weighed them.
  SELECT session_id, layer, name, sum(seen), sum(calls), sum(seen_ns), sum(ns), NULL, NULL, 0, 0, 1,
    CASE WHEN sum(calls) = sum(seen) THEN 0 END, CASE WHEN sum(calls) = sum(seen) THEN 0 END
  FROM calls
  WHERE slice_id IS NULL
  GROUP BY ALL
), totals AS (
  SELECT session_id, layer, name, sum(seen) AS seen, sum(calls) AS calls, sum(seen_ns) AS seen_ns, sum(ns) AS ns,
    CASE WHEN bool_and(v IS NOT NULL) THEN sum(v) END AS v, CASE WHEN bool_and(v_ns IS NOT NULL) THEN sum(v_ns) END AS v_ns,
    -- How far the weights are from what the whole steps say; rows of no slice may be part of that, or not.
    coalesce(least(abs(sum(calls) - sum(whole)), abs(sum(calls) FILTER (whole IS NOT NULL) - sum(whole))), 0) + sum(begun) AS apart,
    coalesce(least(abs(sum(ns) - sum(whole_ns)), abs(sum(ns) FILTER (whole IS NOT NULL) - sum(whole_ns))), 0) + sum(begun_ns) AS apart_ns,
    sum(v * v / nullif(freedom, 0)) AS shares, sum(v_ns * v_ns / nullif(freedom, 0)) AS shares_ns
  FROM variances
  GROUP BY ALL
), halves AS (
  -- x is one over the degrees of freedom; exp(…) is the 0.975 quantile of Student's t, to 2e-5 of itself.
  SELECT *,
    apart + sqrt(v) * exp(0.672931 + x * (1.21015 + x * (0.707652 + x * (0.168213 + x * (-0.318298 + x * 0.101461))))) AS half,
    apart_ns + sqrt(v_ns) * exp(0.672931 + x_ns * (1.21015 + x_ns * (0.707652 + x_ns * (0.168213 + x_ns * (-0.318298 + x_ns * 0.101461))))) AS half_ns
  FROM (SELECT *, least(coalesce(shares / nullif(v * v, 0), 0), 1) AS x, least(coalesce(shares_ns / nullif(v_ns * v_ns, 0), 0), 1) AS x_ns FROM totals) AS t
)
SELECT session_id, layer, name, seen AS recorded,
  calls,
  greatest(seen, coalesce(calls - half, seen)) AS calls_lo,
  calls + half AS calls_hi,
  CAST(round(ns) AS BIGINT) AS total_ns,
  CAST(floor(greatest(seen_ns, coalesce(ns - half_ns, seen_ns))) AS BIGINT) AS total_lo_ns,
  CAST(ceil(ns + half_ns) AS BIGINT) AS total_hi_ns
FROM halves;

-- A row is one thing that torch.compile compiled: the frame of a function, what is behind a graph break, a backward pass.
CREATE OR REPLACE VIEW compilation AS
WITH compiled AS (
  SELECT session_id, span_id, pid, tid, ts_ns, duration_ns, name = 'entire_backward_compile' AS backward, python_stack_id,
    coalesce(lead(ts_ns) OVER (PARTITION BY session_id, pid, tid ORDER BY ts_ns), 9223372036854775807) AS next_ns
  FROM span
  WHERE category = 'compile' AND name IN ('entire_forward_compile', 'entire_backward_compile')
), kept AS (
  -- What was compiled is kept with its code before the thread compiles anything else.
  SELECT session_id, pid, tid, ts_ns, handle,
    row_number() OVER (PARTITION BY session_id, pid, handle ORDER BY ts_ns) AS version
  FROM span
  WHERE category = 'compile' AND name = 'create_cache_entry' AND handle IS NOT NULL
), outcome AS (
  SELECT c.session_id, c.span_id, min_by(k.handle, k.ts_ns) AS code, min_by(k.version, k.ts_ns) AS version
  FROM compiled AS c
  JOIN kept AS k ON k.session_id = c.session_id AND k.pid = c.pid AND k.tid = c.tid AND k.ts_ns >= c.ts_ns AND k.ts_ns < c.next_ns
  GROUP BY ALL
), frames AS (
  SELECT c.session_id, c.span_id, unnest(s.frames) AS frame, generate_subscripts(s.frames, 1) AS depth
  FROM compiled AS c
  JOIN (SELECT DISTINCT session_id, stack_id, frames FROM stack) AS s
    ON s.session_id = c.session_id AND s.stack_id = c.python_stack_id
), cause AS (
  -- The innermost line that is not of PyTorch, nor of what that calls itself by.
  SELECT session_id, span_id, min_by(frame, depth) AS frame
  FROM frames
  WHERE frame.kind = 'python' AND NOT contains(frame.file, '/torch/') AND NOT starts_with(frame.file, '<')
    AND NOT ends_with(frame.file, '/contextlib.py') AND NOT ends_with(frame.file, '/functools.py')
  GROUP BY ALL
), resumed AS (
  -- Where a graph breaks Dynamo makes a function of the rest, with a name of its own.
  SELECT DISTINCT session_id, frame.file AS file, frame.function AS function
  FROM (SELECT session_id, unnest(frames) AS frame FROM stack WHERE contains(folded, 'torch_dynamo_resume_in_'))
  WHERE starts_with(frame.function, 'torch_dynamo_resume_in_')
), caused AS (
  SELECT session_id, span_id, frame.file AS file, CAST(frame.line AS INTEGER) AS line,
    regexp_replace(frame.function, '^torch_dynamo_resume_in_(.*)_at_[0-9]+$', '\1') AS function
  FROM cause
)
SELECT c.session_id, c.span_id, c.pid, c.tid, c.ts_ns, c.duration_ns,
  CASE WHEN c.backward THEN 'backward'
    WHEN o.version > 1 THEN 'recompilation'
    WHEN r.function IS NOT NULL THEN 'graph_break'
    ELSE 'first' END AS kind,
  f.function, f.file, f.line, CASE WHEN c.backward THEN NULL ELSE o.code END AS code,
  c.python_stack_id
FROM compiled AS c
LEFT JOIN outcome AS o ON o.session_id = c.session_id AND o.span_id = c.span_id
LEFT JOIN caused AS f ON f.session_id = c.session_id AND f.span_id = c.span_id
LEFT JOIN resumed AS r ON r.session_id = c.session_id AND r.file = f.file
  AND r.function = 'torch_dynamo_resume_in_' || f.function || '_at_' || f.line;
