// Package deliver hands one message to the world: a mail by SMTP, or a POST of JSON. It does not try again: its callers are jobs, which do.
package deliver
