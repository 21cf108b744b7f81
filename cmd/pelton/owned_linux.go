package main

import "syscall"

// dieWithOwner has the kernel kill a child when the thread that started it ends.
func dieWithOwner() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
