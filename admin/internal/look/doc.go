// Package look has the statements that only the page and the API read by: charts, searches, pieces of logs. Each is bounded, and reads large
// tables by index or by partitions that its parameters name; what writes is elsewhere. Its slots bound how many reads go on at once, in all and of one user.
package look
