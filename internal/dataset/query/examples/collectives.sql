-- Collectives of torch.distributed: how long each rank waited for the others
SELECT i.rank, i.name, count(*) AS calls, any_value(i.bytes) AS bytes, sum(w.duration_ns) / 1e6 AS waited_ms,
  max(w.duration_ns) / 1e6 AS longest_ms, arg_max(i.sequence_number, w.duration_ns) AS longest_number
FROM span i
JOIN span w ON w.pid = i.pid AND w.communicator_handle = i.communicator_handle AND w.sequence_number = i.sequence_number
  AND w.layer = 'collective' AND w.category = 'wait'
WHERE i.layer = 'collective' AND i.category = 'issue'
GROUP BY ALL
ORDER BY waited_ms DESC
LIMIT 20;
