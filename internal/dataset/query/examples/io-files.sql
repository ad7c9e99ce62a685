-- Which files the job read and wrote, the slowest first (of a recording with --paths)
SELECT path, operation, file_system, sum(calls) AS calls, sum(bytes) / 1e6 AS mb,
  sum(duration_ns) / 1e6 AS ms, sum(waited_ns) / 1e6 AS waited_ms, count(DISTINCT (pid, tid)) AS threads
FROM io
WHERE path IS NOT NULL
GROUP BY ALL
ORDER BY coalesce(ms, waited_ms) DESC, path;
