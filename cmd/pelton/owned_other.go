//go:build !linux

package main

import "syscall"

// dieWithOwner does nothing: only Linux can.
func dieWithOwner() *syscall.SysProcAttr { return nil }
