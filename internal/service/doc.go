// Package service gives loops a life: Start does not block, Stop waits, both may be called any number of times and by anyone.
package service
