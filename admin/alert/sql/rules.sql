-- What is known of rules beside their subjects.
SELECT r.rule, r.noticed_at, r.fault_at, r.fault FROM pelton.alert_rule r
