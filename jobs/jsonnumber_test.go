package jobs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/peltonq/pelton/schema/schematest"
)

// What is refused at the edge is what the database refuses, to the digit.
func TestNumbersAreRefusedAsPostgresRefusesThem(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	zeros := func(n int) string { return strings.Repeat("0", n) }
	numbers := []string{
		"0", "-1", "1.5e3", "1E+5", "1e131071", "1e131072", "9.99e131071", "10e131071", "-1e200000", "1" + zeros(131071),
		"1" + zeros(131072), "0.1e131072", "0.1e131073", "0.001e131074", "0.001e131075", "1e-16383", "1e-16384", "1.5e-16382",
		"1.5e-16383", "0." + zeros(16382) + "1", "0." + zeros(16383) + "1", "0." + zeros(16383), "0." + zeros(16384), "0e200000",
		"0e-16383", "0e-16384", "1.0e16384", "1e99999999999999999999", "0e2000000000", "1e2000000000", "1." + zeros(20000) + "e4000",
		"1." + zeros(20000) + "e3000",
	}
	refused := 0
	for _, n := range numbers {
		for _, form := range []string{`%s`, `{"e\"\\":[%s,"1e200000","\\"]}`} {
			doc := fmt.Sprintf(form, n)
			err := checkJSON("args", []byte(doc), MaxArgsBytes)
			_, dbErr := pool.Exec(t.Context(), `SELECT $1::text::jsonb`, doc)
			if (err == nil) != (dbErr == nil) {
				t.Errorf("%.40s (%d bytes): %v; the database says %v", doc, len(doc), err, dbErr)
			}
			if err != nil {
				refused++
			}
			if err != nil && !errors.Is(err, errNumber) {
				t.Errorf("%.40s: %v", doc, err)
			}
		}
	}
	if refused < 20 || refused == 2*len(numbers) {
		t.Errorf("%d of %d refused", refused, 2*len(numbers))
	}
}

func BenchmarkCheckNumbers(b *testing.B) {
	doc := []byte(`{"customer":"7f3c","items":[{"sku":"abc-1","price":12.5,"count":3},{"sku":"esc\"aped","price":1e3}],"note":"` +
		strings.Repeat("lorem ipsum ", 20) + `"}`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if err := checkNumbers(doc); err != nil {
			b.Fatal(err)
		}
	}
}
