-- Kernels that torch.compile generated for a CPU, and the operators that they replace
SELECT name, round(sum(weight)) AS calls, round(sum(duration_ns * weight) / 1e6, 2) AS total_ms,
  round(sum(duration_ns * weight) / sum(weight) / 1e3, 1) AS mean_us,
  round(100 * sum(duration_ns * weight) / sum(sum(duration_ns * weight)) OVER (), 1) AS percent,
  array_to_string(from_json(any_value(fused_operators), '["VARCHAR"]'), ', ') AS replaces
FROM span
WHERE category = 'fused' AND duration_ns IS NOT NULL
GROUP BY name
ORDER BY total_ms DESC;
