DROP TABLE pelton.queue_tally;
