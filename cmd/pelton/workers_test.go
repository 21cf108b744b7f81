package main

import (
	"slices"
	"testing"
)

func TestProgramsOfJobsDoNotSeeTheDatabasesAddress(t *testing.T) {
	t.Parallel()
	got := withoutSecrets([]string{"PATH=/bin", "DATABASE_URL=postgres://u:secret@h/d", "PGPASSWORD=secret", "HOME=/"})
	if want := []string{"PATH=/bin", "HOME=/"}; !slices.Equal(got, want) {
		t.Errorf("environment is %v, want %v", got, want)
	}
}
