-- Time in PyTorch's CPU allocator in each training step, from one backward pass to the next
-- Where weight is above 1 only slices were recorded: a step that one cut shows what was seen of it.
WITH pass AS (SELECT session_id, pid, tid, ts_ns, count(*) OVER (PARTITION BY session_id, pid, tid) AS passes
    FROM span WHERE layer = 'autograd' AND category = 'backward'),
  training AS (SELECT session_id, arg_max((pid, tid), passes) AS thread FROM pass GROUP BY ALL),
  step AS (SELECT session_id, pid, ts_ns AS begin_ns, row_number() OVER (PARTITION BY session_id ORDER BY ts_ns) AS number
    FROM pass JOIN training USING (session_id) WHERE (pid, tid) = thread)
SELECT number AS step,
  count(*) FILTER (action = 'alloc') AS allocations,
  sum(m.duration_ns) FILTER (action = 'alloc') / 1e3 AS allocations_us,
  count(*) FILTER (action = 'free') AS frees,
  sum(m.duration_ns) FILTER (action = 'free') / 1e3 AS frees_us,
  count(m.duration_ns) AS timed
FROM memory AS m ASOF JOIN step ON m.session_id = step.session_id AND m.pid = step.pid AND m.ts_ns >= step.begin_ns
WHERE m.level = 'allocator' AND m.space = 'host' AND action IN ('alloc', 'free')
GROUP BY ALL
ORDER BY step;
