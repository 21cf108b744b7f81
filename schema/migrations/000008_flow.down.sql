DROP FUNCTION pelton.flow_report_first(bigint[], bigint[]), pelton.flow_reports_from(bigint, integer);
DROP TABLE IF EXISTS pelton.flow_timer, pelton.flow_report, pelton.flow_swept, pelton.flow_node, pelton.flow_run, pelton.flow_content, pelton.flow_file,
    pelton.flow, pelton.flow_version, pelton.flow_project;
