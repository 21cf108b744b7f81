// Package access says who may do what through the page and the API: users and their roles, tokens, sessions, logins by password
// and by OpenID Connect (OIDC).
//
// # What it promises
//
// A [Store] keeps users, tokens and sessions in the database, so any number of servers agree. What it keeps is of no use to who
// reads it: passwords are argon2id hashes; tokens and session ids are 32 random bytes, of which only a SHA-256 is stored. Every
// change, and every login and failed login, is in the audit in the same transaction.
//
// A [Guard] finds out who sends an HTTP request (a token in Authorization, a session in a cookie) and puts an [Actor] into its
// context. [Actor.Check] says whether the actor may do a thing. What is done then carries the actor's name into the audit
// ([jobs.WithActor]).
//
// # Roles
//
// viewer < operator < admin, each in one project or, as [Everything], in all of them and for what belongs to none: jobs, queues,
// executors. An actor has the highest of the roles that cover a project. A token has at most its own role, in its own project, and at
// most what its user has: disabling a user, or taking a role back, holds at once for sessions and tokens that exist.
//
// # Logins
//
// A login does the same work whether the name exists or not: one hash is computed, the same statements are run, and the
// answer is the same ([ErrLogin]). Tries are counted as failed before they are looked at, so that many at once are no way round
// the limits per name and per address; beyond some, each doubles the time until the next ([*LimitedError]). A session
// begins only if the password it was checked against still stands. Sessions end 12 hours after they were last used, 7 days after they
// began, and with a change of the password or the end of the user.
//
// # Requests from other pages
//
// Cookies are SameSite=Lax, HttpOnly and, where the connection is TLS, Secure with the prefix __Host-. Requests that change something are
// refused if the browser says that another page sent them (Sec-Fetch-Site, Origin); one that comes with a cookie must say that it
// was not. Where the server listens on this machine alone, requests must name it by a name of this machine, so that a page whose name was
// made to point here (DNS rebinding) reads nothing.
//
// # Without users
//
// As long as there has never been a user, a server that listens on this machine alone lets everybody in as "local", with all
// rights. The first user ends that at once.
//
// # Failure
//
// If the database does not answer, nobody is let in: requests get 503.
package access
