-- What was lost: rows that should be here and are not, by reason and by function
WITH lost AS (
  SELECT 1 AS part, CAST(sum(count) AS BIGINT) AS lost_rows, source AS what, max(detail) AS why
  FROM warning
  WHERE kind = 'lost'
  GROUP BY source
  UNION ALL
  SELECT 2, CAST(sum(lost) AS BIGINT), coalesce(name, symbol), 'calls of this function, among the rows above'
  FROM probe
  WHERE lost > 0
  GROUP BY coalesce(name, symbol)
)
SELECT
  lost_rows,
  CASE WHEN length(what) > 28 THEN left(what, 27) || '…' ELSE what END AS what,
  rtrim(regexp_replace(why, '(.{1,30})(\s+|$)', '\1' || chr(10), 'g'), chr(10)) AS why
FROM lost
ORDER BY part, lost_rows DESC, what
LIMIT 50;
