// Package jobstest helps to test code that uses package jobs.
package jobstest
