WITH compiled AS (
  SELECT session_id, span_id, pid, tid, ts_ns, duration_ns, name = 'entire_backward_compile' AS backward, python_stack_id,
    coalesce(lead(ts_ns) OVER (PARTITION BY session_id, pid, tid ORDER BY ts_ns), 9223372036854775807) AS next_ns
  FROM span
  WHERE category = 'compile' AND name IN ('entire_forward_compile', 'entire_backward_compile')
), kept AS (
  -- What was compiled is kept with its code before the thread compiles anything else.
  SELECT session_id, pid, tid, ts_ns, handle,
    row_number() OVER (PARTITION BY session_id, pid, handle ORDER BY ts_ns) AS version
  FROM span
  WHERE category = 'compile' AND name = 'create_cache_entry' AND handle IS NOT NULL
), outcome AS (
  SELECT c.session_id, c.span_id, min_by(k.handle, k.ts_ns) AS code, min_by(k.version, k.ts_ns) AS version
  FROM compiled AS c
  JOIN kept AS k ON k.session_id = c.session_id AND k.pid = c.pid AND k.tid = c.tid AND k.ts_ns >= c.ts_ns AND k.ts_ns < c.next_ns
  GROUP BY ALL
), frames AS (
  SELECT c.session_id, c.span_id, unnest(s.frames) AS frame, generate_subscripts(s.frames, 1) AS depth
  FROM compiled AS c
  JOIN (SELECT DISTINCT session_id, stack_id, frames FROM stack) AS s
    ON s.session_id = c.session_id AND s.stack_id = c.python_stack_id
), cause AS (
  -- The innermost line that is not of PyTorch, nor of what that calls itself by.
  SELECT session_id, span_id, min_by(frame, depth) AS frame
  FROM frames
  WHERE frame.kind = 'python' AND NOT contains(frame.file, '/torch/') AND NOT starts_with(frame.file, '<')
    AND NOT ends_with(frame.file, '/contextlib.py') AND NOT ends_with(frame.file, '/functools.py')
  GROUP BY ALL
), resumed AS (
  -- Where a graph breaks Dynamo makes a function of the rest, with a name of its own.
  SELECT DISTINCT session_id, frame.file AS file, frame.function AS function
  FROM (SELECT session_id, unnest(frames) AS frame FROM stack WHERE contains(folded, 'torch_dynamo_resume_in_'))
  WHERE starts_with(frame.function, 'torch_dynamo_resume_in_')
), caused AS (
  SELECT session_id, span_id, frame.file AS file, CAST(frame.line AS INTEGER) AS line,
    regexp_replace(frame.function, '^torch_dynamo_resume_in_(.*)_at_[0-9]+$', '\1') AS function
  FROM cause
)
SELECT c.session_id, c.span_id, c.pid, c.tid, c.ts_ns, c.duration_ns,
  CASE WHEN c.backward THEN 'backward'
    WHEN o.version > 1 THEN 'recompilation'
    WHEN r.function IS NOT NULL THEN 'graph_break'
    ELSE 'first' END AS kind,
  f.function, f.file, f.line, CASE WHEN c.backward THEN NULL ELSE o.code END AS code,
  c.python_stack_id
FROM compiled AS c
LEFT JOIN outcome AS o ON o.session_id = c.session_id AND o.span_id = c.span_id
LEFT JOIN caused AS f ON f.session_id = c.session_id AND f.span_id = c.span_id
LEFT JOIN resumed AS r ON r.session_id = c.session_id AND r.file = f.file
  AND r.function = 'torch_dynamo_resume_in_' || f.function || '_at_' || f.line
