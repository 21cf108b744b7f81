package sqlfile_test

import (
	"testing"
	"testing/fstest"

	"github.com/peltonq/pelton/internal/sqlfile"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"sql/one.sql": {Data: []byte("-- What it is for: pelton.job.\nSELECT pelton.f(a) -- why\n\tFROM pelton.job\r\n\nWHERE pelton_x.pelton.y = mypelton.z\n")}}
	const want = `SELECT "my ""own"".".f(a) FROM "my ""own"".".job WHERE pelton_x."my ""own"".".y = mypelton.z`
	if got := sqlfile.Load(files, "sql", `my "own".`).Get("one"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestForSchema(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                       "",
		"pelton.a,pelton.b":                      `"own".a,"own".b`,
		"CREATE SCHEMA IF NOT EXISTS pelton;":    `CREATE SCHEMA IF NOT EXISTS "own";`,
		"NOTIFY 'pelton_wake' 'pelton.x' pelton": `NOTIFY 'own_wake' '"own".x' pelton`,
		"épelton.a xpelton.b 1pelton.c":          "épelton.a xpelton.b 1pelton.c",
	} {
		if got := sqlfile.ForSchema(text, "own"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
