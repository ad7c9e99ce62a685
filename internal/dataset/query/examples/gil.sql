-- Time on the CPU by thread: with Python's global lock, without it, collecting garbage
SELECT pid, tid, any_value(name) AS thread, sum(weight_ns) / 1e6 AS on_cpu_ms,
  coalesce(sum(weight_ns) FILTER (holds_gil), 0) / 1e6 AS with_gil_ms,
  coalesce(sum(weight_ns) FILTER (NOT holds_gil), 0) / 1e6 AS without_gil_ms,
  coalesce(sum(weight_ns) FILTER (in_gc), 0) / 1e6 AS collecting_ms
FROM sample LEFT JOIN (SELECT DISTINCT ON (pid, tid) pid, tid, name FROM thread) AS t USING (pid, tid)
WHERE state = 'on_cpu'
GROUP BY ALL
ORDER BY on_cpu_ms DESC
LIMIT 20;
