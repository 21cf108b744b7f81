package quantity

import "testing"

func TestQuantities(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Of(0, "job"): "0 jobs", Of(1, "job"): "1 job", Of(int64(2), "job"): "2 jobs", Of(1, "try", "tries"): "1 try", Of(3, "try", "tries"): "3 tries",
		Say(1, "it was", "%d were"): "it was", Say(2, "it was", "%d were"): "2 were", Say(0, "one", "many"): "many",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
