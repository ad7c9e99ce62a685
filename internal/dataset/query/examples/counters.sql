-- What the machine did meanwhile: counters, by device, a second or on average
SELECT source, coalesce(device, scope, 'machine') AS what, name, any_value(unit) AS unit, count(*) AS readings,
    round(CASE any_value(kind) WHEN 'delta' THEN 1e9 * sum(value) / nullif(sum(period_ns), 0) END, 1) AS per_second,
    round(CASE WHEN any_value(kind) != 'delta' THEN avg(value) END, 1) AS average,
    max(value) AS largest
FROM counter
GROUP BY source, what, name
HAVING max(value) != 0
ORDER BY source, what, name
LIMIT 200;
