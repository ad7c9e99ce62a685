-- What is missing: warnings, and probes that lost or passed by calls
SELECT 'warning' AS found_in, kind, source, CAST(sum(count) AS BIGINT) AS count, max(detail) AS detail
FROM warning
GROUP BY kind, source
UNION ALL
SELECT 'probe', 'lost', symbol, lost, library FROM probe WHERE lost > 0
UNION ALL
SELECT 'probe', 'thinned', symbol, thinned, library FROM probe WHERE thinned > 0
ORDER BY count DESC, found_in, kind, source
LIMIT 50;
