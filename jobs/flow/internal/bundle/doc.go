// Package bundle reads the files of an upload, from a zip or a directory: which there are, their modes, sizes and SHA-256.
//
// Contents are streamed, never held: a bundle knows its files, and each can be opened as often as needed. Paths are relative,
// with slashes; a single directory at the top is taken off; __MACOSX and names that begin with a dot are left out. The order
// is that of the paths. Only the executable bit of a mode is kept.
//
// An upload is refused, with every reason, if a path leads out of it or is absolute, if a name comes twice or is a file and a
// directory, if a file is neither a regular file nor a directory, or if it holds more than Limits allows. Sizes are counted while
// reading, so a zip cannot lie about them. The sound files of a refused upload can be read, unless it is larger than Limits allows. A file whose contents are no longer those that were hashed fails when it is read.
package bundle
