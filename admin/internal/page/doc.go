// Package page is what people see in a browser: HTML made on the server, one style sheet, and a few lines of script for what is live.
//
// # What it promises
//
// Everything can be read and done without scripts; live parts then show what was when the page was made. What jobs, people and programs
// wrote is escaped, and characters that would act in a text (controls, terminal escapes, changes of direction) are shown as signs:
// render does both for every page, so that no template can forget it. Nothing comes from elsewhere: the policy that the server sends
// forbids it, and inline scripts and styles too.
//
// # How it works
//
// A page belongs to a [room]: a file with its routes and their handlers, a template of the same name, and a line in rooms. A route says what role it
// needs; a handler returns an error instead of writing one, and gets a page for it. Forms are plain POSTs that end with a redirect and a
// message (see [Page.done]).
//
// A live part is an element with data-live and the path of its source. The script opens one stream (server-sent events) for all parts of a
// page; the server makes a part anew every second or two, from the same template that the page used, once for all who look at it, and
// sends it if it has changed. Making a part may take a hundredth of the time at most: one that takes long is made less often. When nobody
// looks, nothing is made. A stream looks every few seconds whether its actor may still see it.
//
// Reads run in read-only transactions with a time limit ([Page.read]); one that takes longer gives a page that says so.
//
// # Failure
//
// If the database does not answer, pages say so with 503, and live parts keep what they show and say that it is old.
package page
