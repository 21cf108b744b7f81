// Package pagetest is a kit for tests of pages: a server on a real database, people of every role, and a browser.
package pagetest
