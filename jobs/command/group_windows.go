package command

import (
	"os"
	"syscall"
)

const pathSeparators = `/\:`

var defaultShell = []string{"cmd", "/c"}

func attributes() *syscall.SysProcAttr { return nil }

func holdThread() func() { return func() {} }

// terminate has no milder way than kill here.
func (g *group) terminate() { g.kill() }

func (g *group) kill() { _ = g.process.Kill() }

// alive is false: there is no group, so nothing is left after the program itself.
func (g *group) alive() bool { return false }

func outcome(state *os.ProcessState) (int, string) { return state.ExitCode(), "" }
