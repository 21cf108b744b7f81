package flow

// Limit sets how many runs a client that has not started advances at a time, and how many nodes a step changes.
func (c *Client) Limit(atOnce, nodes int) {
	c.engine.hands, c.engine.stepNodes = newHands(atOnce), nodes
}

// Floor is the id from which on the client's engine reads reports.
func (c *Client) Floor() int64 { return c.engine.head.Floor() }
