-- What the job reads and writes in each training step: from one backward pass to the next
WITH pass AS (SELECT session_id, pid, tid, ts_ns, count(*) OVER (PARTITION BY session_id, pid, tid) AS passes
    FROM span WHERE layer = 'autograd' AND category = 'backward'),
  training AS (SELECT session_id, arg_max((pid, tid), passes) AS thread FROM pass GROUP BY ALL),
  step AS (SELECT session_id, ts_ns AS begin_ns, row_number() OVER (PARTITION BY session_id ORDER BY ts_ns) AS number
    FROM pass JOIN training USING (session_id) WHERE (pid, tid) = thread)
SELECT number AS step, operation, kind, file_system, mount, sum(calls) AS calls, sum(bytes) / 1e6 AS mb,
  sum(duration_ns) / 1e6 AS ms, sum(waited_ns) / 1e6 AS waited_ms
FROM io ASOF JOIN step ON io.session_id = step.session_id AND io.ts_ns >= step.begin_ns
GROUP BY ALL
ORDER BY step, ms DESC;
