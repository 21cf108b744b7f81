-- The project of a run: for checks of roles.
SELECT p.name FROM pelton.flow_run r JOIN pelton.flow_project p ON p.id = r.project_id WHERE r.id = $1
