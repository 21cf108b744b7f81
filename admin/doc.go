// Package admin shows how Pelton does over HTTP: Prometheus metrics, health and readiness, and what users may see and do.
//
// # What it promises
//
// [Metrics] counts what the clients of this process do (it is their [jobs.Observer], [flow.StepObserver] and [periodic.Observer]) and tells, when it is
// asked, what the database holds. It never makes a run wait: an observed batch costs well under a microsecond a run, some microseconds
// for the job of a tick, and takes no lock that a scrape holds. The number of series is bounded: see Metrics. docs/metrics.md lists all names.
//
// [Server] answers on 127.0.0.1 unless told otherwise, and refuses any other address unless what is said there is hidden (TLS, a proxy) and
// somebody can log in, or Config.InsecureListen allows it. With Config.Access, all but health, readiness and the login is for
// actors of package access; metrics too, where others can reach the server.
//
// # How it works
//
// Counters and histograms are those of this process; sum them over processes. Gauges about the database are read when a scrape
// asks, in short read-only transactions with a time limit: those of the queue, and of flows and schedules, are kept for at least 5 seconds and for
// 50 times as long as the reading took, those of nodes and of sizes on disk for at least a minute and 200 times as long. So any number of
// scrapers costs the database at most a thirtieth of one connection. Every process
// that is scraped shows the same; take the maximum, not the sum. Lost jobs are counted in the background, since that reads
// the whole history: once a minute, or less often where it takes long.
//
// # Failure
//
// When the database does not answer in time, a scrape still answers: pelton_up is 0, the gauges about the database are left out, and
// what this process counted stands. If only flows and schedules, or nodes and sizes, cannot be read, only those are left out. That too is kept for a while, so an outage is not met with a burst of attempts. /readyz says
// 503 and why; /healthz says 200 as long as the process answers at all.
package admin
