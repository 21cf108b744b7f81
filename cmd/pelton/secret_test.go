package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/peltonq/pelton/schema/schematest"
)

func TestSecretCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "secret.key")
	s.fails(exitUsage, "no key file is given; name the file by --secret-key-file", "secret", "set", "PW")
	s.fails(exitUsage, "does not exist", "secret", "set", "PW", "--secret-key-file", file)
	if out := s.ok("secret", "key", file); !strings.Contains(out, " is in "+file+"; keep a copy elsewhere") {
		t.Errorf("key: %q", out)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info.Mode(), err)
	}
	s.fails(exitRefused, "exists: --add", "secret", "key", file)
	if again := s.ok("secret", "key", "--if-missing", file); again != s.ok("secret", "key", "--if-missing", file) {
		t.Errorf("it says %q of a file that exists", again)
	}
	s.env["PELTON_SECRET_KEY_FILE"] = file

	const value = "correct horse"
	for stdin, c := range map[string]struct {
		out  string
		args []string
	}{
		value + "\n":         {"secret PW of project etl set, version 1\n", []string{"PW", "--project", "etl"}},
		value + "\nmore\r\n": {"secret LINES of all projects set, version 1\n", []string{"LINES"}},
	} {
		if r := s.try(stdin, append([]string{"secret", "set"}, c.args...)...); r.code != exitOK || r.out != c.out {
			t.Errorf("set: %+v", r)
		}
	}
	s.fails(exitUsage, "no value", "secret", "set", "PW")
	if r := s.try("abc", "secret", "set", "PW"); r.code != exitUsage || !strings.Contains(r.err, "3 bytes, want 4 or more") {
		t.Errorf("short: %+v", r)
	}
	if r := s.try(value, "secret", "set", "PW", value); r.code != exitUsage {
		t.Errorf("a value as argument: %+v", r)
	}
	secrets := s.lines("secret", "list")
	if len(secrets) != 2 || secrets[0]["name"] != "LINES" || secrets[0]["project"] != "*" || !strings.HasPrefix(as[string](t, secrets[1]["set_by"]), "os:") {
		t.Errorf("list: %v", secrets)
	}
	fields(t, secrets[0], "project", "name", "version", "key", "set_at", "set_by")
	if out := s.ok("secret", "list", "--project", "etl"); !strings.Contains(out, "PW") || strings.Contains(out, "LINES") {
		t.Errorf("list of a project: %s", out)
	}
	was := s.object("secret", "key", "--add", file)
	done := s.object("secret", "rekey")
	if done["key"] != was["key"] || secrets[0]["key"] == was["key"] || fmt.Sprint(done["changed"]) != "2" {
		t.Errorf("rekey: %v after %v", done, was)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.fails(exitUsage, "line 1 is no key", "secret", "key", "--add", file)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.ok("secret", "key", file)
	s.fails(exitFailed, "2 secrets could not be decrypted", "secret", "rekey")
	if out := s.ok("secret", "delete", "PW", "--project", "etl"); out != "secret PW of project etl is deleted\n" {
		t.Errorf("delete: %q", out)
	}
	s.fails(exitNotFound, "secret etl/PW", "secret", "delete", "PW", "--project", "etl")
	audit := s.ok("audit", "list")
	for _, action := range []string{"secret.set", "secret.rekey", "secret.delete"} {
		if !strings.Contains(audit, action) {
			t.Errorf("the audit has no %s: %s", action, audit)
		}
	}
	for _, row := range schematest.Find(t, s.pool(), "horse") {
		t.Errorf("stored: %s", row)
	}
}
