-- Which operators allocate: how often and how much
SELECT
  coalesce(s.name, '(outside any operator)') AS operator,
  m.space,
  m.level,
  CAST(round(sum(m.weight)) AS BIGINT) AS allocations,
  round(sum(m.bytes * m.weight) / 1048576, 3) AS allocated_mib,
  max(m.bytes) AS largest_bytes
FROM memory AS m
LEFT JOIN span AS s ON s.session_id = m.session_id AND s.span_id = m.span_id
WHERE m.action = 'alloc'
GROUP BY ALL
ORDER BY allocated_mib DESC NULLS LAST, operator
LIMIT 20;
