// Package postgres finds the programs of a PostgreSQL server on this machine and runs a private server with them, for
// development, load tests and tests.
//
// # Promises
//
// [Find] looks in the places where distributions put a server and says in its error where it looked and why it took
// none of what it found. [Download] fetches the programs when there are none. [Start] makes the data directory when it
// is empty, starts the server and returns when it answers. The server listens on 127.0.0.1 (and on a socket in its
// data directory) only. A directory that is not Pelton's is never touched.
//
// # How it works
//
// The server is a child of this process in a process group of its own, so that Ctrl-C on the terminal reaches the
// owner alone, which then stops the server when its own work is done. What a later start must know (the password, the
// port) is kept in the file pelton.json in the data directory. initdb works in a directory beside the wanted one, which
// is renamed when it is complete: a start killed half way leaves nothing that looks like a cluster.
//
// PostgreSQL refuses to run as root. As root the server runs as another user: the one in the Config, else postgres,
// else nobody. That user must be able to reach the programs and the data directory; [Place] picks a directory where it
// can.
//
// # Failure
//
// A lock file beside the data directory is held while a Cluster uses it, so that two owners of one directory are
// refused with [ErrInUse], and so is a server that an owner left behind. A postmaster.pid whose process is gone, or has
// become another program, does not hinder a start. With Config.DieWithOwner the kernel stops the server when its owner
// is killed (Linux only). A server that dies by itself is seen on [Cluster.Done].
package postgres
