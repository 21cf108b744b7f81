DROP TABLE pelton.access_failure;
DROP TABLE pelton.access_session;
DROP TABLE pelton.access_token;
DROP TABLE pelton.access_role;
DROP TABLE pelton.access_user;
