package page_test

import (
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

func TestPartitions(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	viewer, operator, admin := s.As("viewer"), s.As("operator"), s.As("admin")
	// A new database has nothing but open-ended partitions: that is a warning.
	a := viewer.Want(200, "/partitions", "schedule_tick", "job_log", "rows go into the open-ended one", `class="warning"`, "7 d", "3 d", "30 d")
	if strings.Contains(a.Body, "/partitions/maintain") {
		t.Error("a viewer is offered what would be refused")
	}
	s.As("etl").Want(403, "/partitions")
	operator.Want(403, "/partitions/maintain")
	operator.WantPost(403, "/partitions/maintain", nil)
	admin.Want(200, "/partitions", `href="/partitions/maintain"`)
	admin.Want(200, "/partitions/maintain", "dropped with what is in them", "Maintain now")
	admin.WantPost(303, "/partitions/maintain", nil, "partitions were made ahead", "30 made ahead")
	if a := viewer.Want(200, "/partitions", "30, for ", ">ahead<", ">open<", ">rest<"); strings.Contains(a.Body, `class="warning"`) {
		t.Errorf("a warning where all is well: %s", a.Body)
	}
	admin.Want(200, "/audit?action=partition.maintain", "admin", "partitions")
	// One that is long past its retention, and not dropped, is a warning.
	s.Exec(`CREATE TABLE pelton.job_log_p20240101 (LIKE pelton.job_log INCLUDING ALL)`)
	s.Exec(`DO $$ DECLARE first record; BEGIN
		SELECT c.oid::regclass AS name, pg_get_expr(c.relpartbound, c.oid) AS bound INTO first FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
			WHERE i.inhparent = 'pelton.job_log'::regclass AND pg_get_expr(c.relpartbound, c.oid) LIKE '%MINVALUE%';
		EXECUTE 'ALTER TABLE pelton.job_log DETACH PARTITION ' || first.name;
		EXECUTE 'ALTER TABLE pelton.job_log ATTACH PARTITION pelton.job_log_p20240101 FOR VALUES FROM (MINVALUE) TO (''1449551462400'')';
	END $$`)
	viewer.Want(200, "/partitions", "job_log_p20240101 should have been dropped at 2024-01-05", `<span class="bad-text">`)
}
