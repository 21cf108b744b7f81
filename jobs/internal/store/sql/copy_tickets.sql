-- Appends tickets in bulk. Never seq: its default must draw it after the table's lock.
COPY pelton.job_ready (priority, line, job_ids) FROM STDIN BINARY
