package flow_test

import (
	"fmt"
	"time"

	"github.com/peltonq/pelton/jobs/flow"
)

type LoadArgs struct {
	Table string `json:"table"`
}

func (LoadArgs) Kind() string { return "load" }

// A flow built in code: commands and jobs of one's own, which wait for each other.
func ExampleBuilder() {
	checks := flow.New("checks").
		Command("counts", "./check counts").
		Command("nulls", "./check nulls")

	nightly, err := flow.New("nightly").
		Param("day", "today").
		Command("extract", "./extract.sh ${day}").Timeout(time.Hour).
		Job("load", LoadArgs{Table: "orders"}).After("extract").Retry(flow.Retry{Max: 3, Backoff: time.Minute}).
		Flow("check", checks).After("load").
		Command("alert", "./alert.sh").After("check").When("one_failed").
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(nightly.Name(), nightly.Nodes())

	// What is wrong is told all at once.
	_, err = flow.New("broken").
		Command("a", "").After("b").
		Noop("c").After("c").
		Build()
	fmt.Println(err)
	// Output:
	// nightly [extract load check check:counts check:nulls alert]
	// flow "broken": a: command is missing
	// a: depends on "b", which is no node of the flow
	// c: depends on itself
}
