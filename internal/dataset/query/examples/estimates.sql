-- How often each operator was called and how long it took, with 95 % intervals
-- Where the budget recorded slices only, they say how far off the estimate may be.
SELECT
  layer,
  name,
  recorded,
  CAST(round(calls) AS BIGINT) AS calls,
  CAST(floor(calls_lo) AS BIGINT) AS calls_lo,
  CAST(ceil(calls_hi) AS BIGINT) AS calls_hi,
  round(total_ns / 1e6, 3) AS total_ms,
  round(total_lo_ns / 1e6, 3) AS total_lo_ms,
  round(total_hi_ns / 1e6, 3) AS total_hi_ms
FROM operator_estimate
ORDER BY total_ms DESC, layer, name
LIMIT 50;
