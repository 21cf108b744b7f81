-- Makes a project unless there is one of that name. Waits for another push that makes it.
INSERT INTO pelton.flow_project (name) VALUES ($1) ON CONFLICT (name) DO NOTHING
