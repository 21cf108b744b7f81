package trace

import "context"

// Flush sends what there is.
func (t *Tracer) Flush(ctx context.Context) error { return t.flush(ctx) }
