package schema_test

import (
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

const waitLong = time.Minute // for signals; long, because the machine may be busy
