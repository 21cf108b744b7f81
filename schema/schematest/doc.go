// Package schematest gives tests a migrated database of their own.
package schematest
