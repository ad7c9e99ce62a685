-- Operators by total time: calls, time with and without their children
WITH children AS (
  SELECT session_id, parent_id, sum(duration_ns) AS duration_ns
  FROM span
  WHERE parent_id IS NOT NULL
  GROUP BY ALL
)
SELECT
  s.name,
  s.layer,
  CAST(round(sum(s.weight)) AS BIGINT) AS calls,
  round(sum(s.duration_ns * s.weight) / 1e6, 3) AS total_ms,
  round(sum((s.duration_ns - coalesce(c.duration_ns, 0)) * s.weight) / 1e6, 3) AS self_ms,
  round(sum(s.duration_ns * s.weight) / sum(s.weight) FILTER (WHERE s.duration_ns IS NOT NULL) / 1e3, 3) AS mean_us,
  round(max(s.duration_ns) / 1e3, 3) AS max_us
FROM span AS s
LEFT JOIN children AS c ON c.session_id = s.session_id AND c.parent_id = s.span_id
GROUP BY s.name, s.layer
ORDER BY total_ms DESC NULLS LAST, s.name
LIMIT 20;
