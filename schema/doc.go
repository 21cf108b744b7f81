// Package schema owns Pelton's tables: migrations, the version check, partitions and retention, SQL functions and views.
//
// All DDL lives in migrations/*.sql, written for a schema named pelton, which is replaced by the configured name when a file
// is read, so that several Pelton schemas can live in one database. Migrations run by golang-migrate with its own advisory
// lock; each has a way down.
package schema
