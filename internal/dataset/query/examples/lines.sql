-- Lines by the time of the operators that they call, and by what these allocate: the job's own code, backward with its forward line
-- Time is an operator's own, without those in it; nodes of a backward pass and what they call count for the line of their forward operator.
WITH place AS (
  SELECT session_id, stack_id,
    coalesce(
      list_filter(frames, f -> f.kind = 'python' AND f.line IS NOT NULL AND NOT regexp_matches(f.file, 'site-packages|dist-packages|/lib/python[0-9]|^<'))[1],
      list_filter(frames, f -> f.kind = 'python' AND f.line IS NOT NULL)[1]) AS spot
  FROM (SELECT DISTINCT ON (session_id, stack_id) * FROM stack)
),
children AS (
  SELECT session_id, parent_id AS span_id, sum(duration_ns) AS duration_ns
  FROM span
  WHERE parent_id IS NOT NULL
  GROUP BY ALL
),
timed AS (
  SELECT session_id, python_stack_id AS stack_id,
    sum((s.duration_ns - coalesce(c.duration_ns, 0)) * weight) AS own_ns,
    sum(weight) FILTER (layer = 'op') AS calls
  FROM span AS s
  LEFT JOIN children AS c USING (session_id, span_id)
  WHERE layer IN ('op', 'autograd') AND category IS DISTINCT FROM 'backward'
  GROUP BY ALL
),
allocated AS (
  SELECT session_id, python_stack_id AS stack_id, sum(bytes * weight) AS bytes
  FROM memory
  WHERE action = 'alloc'
  GROUP BY ALL
)
SELECT
  spot.file || ':' || spot.line AS line,
  spot.function AS function,
  CAST(round(sum(calls)) AS BIGINT) AS calls,
  round(sum(own_ns) / 1e6, 3) AS total_ms,
  round(sum(bytes) / 1048576, 1) AS allocated_mib
FROM timed
FULL JOIN allocated USING (session_id, stack_id)
LEFT JOIN place USING (session_id, stack_id)
GROUP BY ALL
ORDER BY total_ms DESC NULLS LAST, line
LIMIT 20;
