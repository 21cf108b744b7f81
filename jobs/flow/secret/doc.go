// Package secret keeps the secrets of flows: what ${secret.NAME} in a config stands for.
//
// # Promises
//
// A value goes into the database encrypted, and out of it only where a program of a node runs. List and the audit tell names, versions,
// who and when. A secret belongs to a project, or to Everywhere; of two with one name the project's counts.
//
// # How it works
//
// A value is encrypted by AES-256-GCM under a nonce of its own. Project, name and version are authenticated with it, so that a row that was
// put in another's place is refused. Keys come from a Source, a KeyFile say, and never from the database. Of several the last encrypts and all
// decrypt; each row says by an id, which is a hash, which key it needs. A KeyFile is read at each use, so a new key needs no restart.
//
// A Reader gives a job the secrets of the project whose node it works for, as the tables of flows say, not as the job says.
//
// # Failure
//
// Without a key, or with other ones, nothing can be set and no node that needs a secret can run; the error says which key is missing. Everything else goes on.
//
// Who may write the table can put back an older row of the same name and version, or delete it. Who has the key file and may read the table has all
// values.
package secret
