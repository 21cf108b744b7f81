DROP VIEW pelton.duty_report;
DROP TABLE pelton.duty;
