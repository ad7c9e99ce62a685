-- What torch.compile compiled, why, and how long that took
SELECT kind, function, regexp_extract(file, '[^/]*$') || ':' || line AS caused_by, count(*) AS times,
  round(sum(duration_ns) / 1e6, 1) AS total_ms, round(max(duration_ns) / 1e6, 1) AS longest_ms
FROM compilation
GROUP BY ALL
ORDER BY sum(duration_ns) DESC NULLS LAST;
