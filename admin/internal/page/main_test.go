package page_test

import (
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }
