-- What waits for peers at this moment, and how far each rank has come
SELECT c.description AS process_group, c.rank, c.issued_number, c.issued_name, c.completed_number, o.category, o.name AS open_call,
  o.sequence_number, (o.seen_ns - o.ts_ns) / 1e9 AS open_s
FROM communicator c LEFT JOIN open_call o USING (pid, communicator_handle)
ORDER BY c.communicator, c.rank, o.ts_ns;
