// Package once does what is asked for once, however often the same request comes: a program that sends it again after a timeout, a person who presses a
// button twice. A request has a key that its sender made up. The answer is stored under it in the transaction of what was done, so both are there or
// neither; a request that was refused, or whose transaction failed, leaves its key free. One that comes while the first is under way waits for it.
//
// Keys are those of an actor: two people's do not meet. They hold for 24 hours at least; the duties of package jobs delete older ones.
package once
