-- How often each operator was called, scaled by what slices passed by
SELECT
  layer,
  name,
  count(*) AS recorded,
  CAST(round(sum(weight)) AS BIGINT) AS calls,
  count(*) FILTER (WHERE status = 'threw') AS threw,
  count(*) FILTER (WHERE end_method = 'unfinished') AS unfinished
FROM span
GROUP BY layer, name
ORDER BY calls DESC, layer, name
LIMIT 50;
