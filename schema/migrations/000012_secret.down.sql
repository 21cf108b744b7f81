DROP TABLE pelton.secret;
