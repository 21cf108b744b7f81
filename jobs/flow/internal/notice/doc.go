// Package notice tells people and programs what became of a run: jobs of kind "flow_notify" that send one e-mail or one webhook
// each, so that a notice that cannot be sent is retried, and seen as a failed job if it never can.
package notice
