package admin_test

import (
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

// patience is how long a test waits for something that must happen.
const patience = time.Minute
