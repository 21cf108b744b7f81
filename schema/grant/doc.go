// Package grant says which rights a role of the database needs, for what it is to do: enqueue jobs, start flows, work, be a scheduler,
// audit, administer.
//
// The one source is matrix.txt. From it come what `pelton grants` gives ([Statements]) and takes back ([Surplus]), the table in
// docs/operations.md, and what a client asks for when it starts ([Missing]). A role of the database may have several of the roles.
//
// # What needs no grant
//
// Functions may be called by everybody, as usual in PostgreSQL, and act with their caller's rights. Partitions need none, those made later
// neither: rights on their parents count. Making and dropping them needs the tables' owner, or a member of it: see [schema.Keeper].
package grant
