DROP TABLE pelton.api_request;
