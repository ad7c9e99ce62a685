-- What the job read and wrote: bytes, calls and time by file system, of all its processes
SELECT operation, kind, file_system, mount, sum(calls) AS calls, sum(failed) AS failed, sum(bytes) / 1e6 AS mb,
  sum(duration_ns) / 1e6 AS ms, sum(waited_ns) / 1e6 AS waited_ms, count(DISTINCT (pid, tid)) AS threads,
  sum(bytes) / nullif(sum(duration_ns), 0) * 1e3 AS mb_per_s
FROM io
GROUP BY ALL
ORDER BY ms DESC;
