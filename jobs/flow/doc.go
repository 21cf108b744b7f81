// Package flow runs workflows: graphs of jobs, from Azkaban projects or built in code.
package flow
