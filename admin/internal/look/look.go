package look

import (
	"embed"

	"github.com/peltonq/pelton/internal/sqlfile"
)

//go:embed sql/*.sql
var files embed.FS

// Load returns the statements for a schema.
func Load(schema string) *sqlfile.Set { return sqlfile.Load(files, "sql", schema) }
