-- Kernels that torch.compile generated, the operators that they replace, and how many calls may be missing
-- Of kernels of Triton's (triton_) the time is that of their launches, not the device's.
-- missed_at_most: calls before a kernel's probe was in, bounded by the passes of the compiled function without one;
-- NULL where only some calls are recorded, or the kernel is in no function that is recorded.
WITH kernel AS (
  SELECT session_id, pid, name, parent_id, count(*) AS calls, max(weight) > 1 AS estimated
  FROM span WHERE category = 'fused' GROUP BY ALL),
pass AS (SELECT session_id, pid, span_id, name FROM span WHERE category = 'function' AND layer = 'scope'),
every AS (SELECT session_id, pid, name, count(*) AS passes FROM pass GROUP BY ALL),
inside AS (
  SELECT kernel.name, (any_value(passes) - count(*)) * max(calls) AS missed, bool_or(estimated) AS estimated
  FROM kernel
  JOIN pass ON pass.session_id = kernel.session_id AND pass.span_id = kernel.parent_id
  JOIN every ON every.session_id = pass.session_id AND every.pid = pass.pid AND every.name = pass.name
  GROUP BY kernel.session_id, kernel.pid, kernel.name, pass.name),
bound AS (
  SELECT name, CASE WHEN NOT bool_or(estimated) THEN sum(missed)::BIGINT END AS missed_at_most
  FROM inside GROUP BY ALL)
SELECT span.name, round(sum(weight)) AS calls, round(sum(duration_ns * weight) / 1e6, 2) AS total_ms,
  round(sum(duration_ns * weight) / sum(weight) / 1e3, 1) AS mean_us,
  round(100 * sum(duration_ns * weight) / sum(sum(duration_ns * weight)) OVER (), 1) AS percent,
  any_value(missed_at_most) AS missed_at_most,
  array_to_string(from_json(any_value(fused_operators), '["VARCHAR"]'), ', ') AS replaces
FROM span LEFT JOIN bound ON bound.name = span.name
WHERE category = 'fused' AND duration_ns IS NOT NULL
GROUP BY span.name
ORDER BY total_ms DESC;
