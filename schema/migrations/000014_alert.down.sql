DROP INDEX pelton.schedule_tick_bad;
DROP TABLE pelton.flow_sla_miss;
DROP TABLE pelton.alert_mute;
DROP TABLE pelton.alert_state;
DROP TABLE pelton.alert_rule;
DROP TABLE pelton.alert_turn;
