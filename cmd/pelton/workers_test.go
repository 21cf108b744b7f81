package main

import (
	"slices"
	"testing"
)

func TestProgramsOfJobsDoNotSeeTheDatabasesAddress(t *testing.T) {
	t.Parallel()
	got := withoutSecrets([]string{
		"PATH=/bin", "DATABASE_URL=postgres://u:secret@h/d", "PGPASSWORD=secret", "PGPASSFILE=/f", "PELTON_MIGRATE_DATABASE_URL=postgres://o:secret@h/d",
		"PELTON_SMTP_URL=smtp://u:secret@h", "PELTON_SECRET_KEY_FILE=/k", "PELTON_OIDC_CLIENT_SECRET=secret", "HOME=/",
	})
	if want := []string{"PATH=/bin", "HOME=/"}; !slices.Equal(got, want) {
		t.Errorf("environment is %v, want %v", got, want)
	}
}
