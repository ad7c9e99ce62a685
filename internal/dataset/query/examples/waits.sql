-- What threads waited for: system call, Python function, thread that ended it
SELECT coalesce(syscall, cause) AS waited_in,
  list_filter(frames, lambda f: f.kind = 'python')[1].function AS python_function,
  count(*) AS waits, sum(weight_ns) / 1e6 AS total_ms, max(weight_ns) / 1e6 AS max_ms,
  mode(waker_tid) AS usual_waker_tid
FROM sample LEFT JOIN (SELECT stack_id, any_value(frames) AS frames FROM stack GROUP BY ALL) USING (stack_id)
WHERE state = 'off_cpu'
GROUP BY ALL
ORDER BY total_ms DESC
LIMIT 20;
