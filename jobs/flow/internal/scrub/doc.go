// Package scrub keeps secrets out of what programs print.
//
// A Set knows the forms in which a value is likely to be printed: as it is, each longer line of it, in base64 (both alphabets, also within a longer text that
// was encoded), URL-encoded and as JSON text. A Writer passes everything on but these, for which it writes ***. It finds them
// also if they come in several writes, so it holds back an end that may be the beginning of one, until more comes or it is closed.
//
// It is a net for accidents. Who wants to print a secret can: reversed, in hexadecimal, a letter at a time, half on stdout and half on stderr.
package scrub
