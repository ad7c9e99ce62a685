-- Peak of live bytes: when, and how much was allocated since the recording began
-- Only where every event was recorded: where weight is above 1, slices missed allocations and frees.
WITH live AS (
  SELECT
    session_id, pid, space, level, device_id, ts,
    CAST(sum(CASE action WHEN 'alloc' THEN bytes WHEN 'free' THEN -bytes ELSE 0 END) OVER (
      PARTITION BY session_id, pid, space, level, device_id
      ORDER BY ts_ns ROWS UNBOUNDED PRECEDING) AS BIGINT) AS live_bytes
  FROM memory
)
SELECT
  pid, space, level, device_id,
  max(live_bytes) AS peak_bytes,
  arg_max(ts, live_bytes) AS peak_at,
  arg_max(live_bytes, ts) AS bytes_at_the_end,
  count(*) AS events
FROM live
GROUP BY session_id, pid, space, level, device_id
ORDER BY peak_bytes DESC, pid;
