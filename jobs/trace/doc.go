// Package trace makes OpenTelemetry traces of jobs, flows and schedules.
//
//	tracer, err := trace.New(ctx, trace.Config{Endpoint: "http://127.0.0.1:4318/v1/traces", Service: "shop"})
//	queue, err := jobs.NewClient(pool, &jobs.Config{Middleware: tracer.Middleware(), ...})
//	flows, err := flow.NewClient(pool, queue, &flow.Config{Observer: tracer.Flows()})
//	...
//	err = tracer.Stop(ctx) // after the clients
//
// # Promises
//
// An insert in a trace that is kept makes a span, and its jobs carry the context in their metadata, so that whoever works them, elsewhere and later,
// goes on with the trace. No statement is made for it, and nothing waits for a collector: what it cannot take is lost.
//
// # How it works
//
// Tracer is River middleware. Around an insert it starts "enqueue KIND" and writes W3C's traceparent into the metadata; around work it
// makes "wait KIND", from when the run was due, and "run KIND", both children of the enqueue. A run that does not complete leaves its own context in
// the metadata of its attempt, which is recorded anyway; the next run links to it. Jobs of an insert of more than a hundred begin traces of their own,
// linked to the enqueue if that is kept.
//
// A run of a flow lives long, and in many processes, so its spans are made when it has ended, from what is known of its nodes then. Their ids
// follow from the trace, which is kept with the run, and from the node's path, so jobs can name them as parents before.
//
// A trace that is not kept is carried as well, so that nobody keeps a part of it. With a ratio of none, what comes without a trace gets nothing.
//
// # Failure
//
// Spans of a transaction that is rolled back stay: a span says that something was tried. A process that dies after the step that ended a flow's run, and
// before it has sent the spans, leaves the trace without them. Nothing is sent twice.
package trace
