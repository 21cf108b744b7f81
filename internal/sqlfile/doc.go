// Package sqlfile reads SQL from embedded files, and runs it.
//
// A file is written for the schema named pelton and can be pasted into psql as it is; reading it replaces that name by the
// configured schema and strips comments. Each room embeds the statements of the tables it owns, one statement a file.
package sqlfile
