-- Memory ran out: who asked for how much, or was killed, where, and what the process held
WITH ran_out AS (SELECT * FROM memory WHERE action = 'out_of_memory'),
  held AS (SELECT r.session_id, r.pid, r.ts_ns, arg_max(c.value, c.ts_ns) / 1e6 AS resident_mb,
      arg_min(c.value, c.ts_ns) / 1e6 AS resident_before_mb, min(c.ts_ns) AS before_ns
    FROM ran_out AS r JOIN counter AS c ON c.session_id = r.session_id AND c.pid = r.pid
      AND c.name = 'process_memory_resident' AND c.ts_ns BETWEEN r.ts_ns - 31000000000 AND r.ts_ns
    GROUP BY ALL)
SELECT r.ts, r.pid, r.level, r.space, r.bytes / 1e6 AS asked_mb, r.total_allocated_bytes / 1e6 AS allocated_mb,
  f[1].function AS function, f[1].file AS file, f[1].line AS line, r.stack_source, resident_mb, resident_before_mb, (r.ts_ns - before_ns) / 1e9 AS before_s
FROM ran_out AS r
LEFT JOIN held USING (session_id, pid, ts_ns)
LEFT JOIN (SELECT session_id, stack_id, list_filter(frames, lambda f: f.kind = 'python') AS f
  FROM (SELECT session_id, stack_id, any_value(frames) AS frames FROM stack GROUP BY ALL)) AS s ON s.session_id = r.session_id AND s.stack_id = coalesce(r.python_stack_id, r.stack_id)
ORDER BY r.ts_ns DESC
LIMIT 20;
