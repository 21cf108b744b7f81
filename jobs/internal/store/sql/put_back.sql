-- Puts the rest of a ticket back under its seq, in the transaction that took it. A plain read sees one of the two versions.
INSERT INTO pelton.job_ready (seq, entered_at, priority, line, job_ids, runs, attempts) VALUES ($1, $2, $3, $4, $5, $6, $7)
