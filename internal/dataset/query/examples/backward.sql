-- Backward nodes with the forward operators that made them
SELECT
  b.name AS backward_node,
  f.name AS forward_operator,
  CAST(round(sum(b.weight)) AS BIGINT) AS calls,
  round(sum(f.duration_ns * f.weight) / 1e6, 3) AS forward_ms,
  round(sum(b.duration_ns * b.weight) / 1e6, 3) AS backward_ms
FROM flow
JOIN span AS f ON f.session_id = flow.session_id AND f.span_id = flow.from_span_id
JOIN span AS b ON b.session_id = flow.session_id AND b.span_id = flow.to_span_id
WHERE flow.kind = 'forward_backward'
GROUP BY b.name, f.name
ORDER BY backward_ms DESC NULLS LAST, b.name, f.name
LIMIT 20;
