package command

import (
	"os"
	"syscall"
)

const pathSeparators = `/\:`

var defaultShell = []string{"cmd", "/c"}

func attributes() *syscall.SysProcAttr { return nil }

// terminate has no milder way than kill here.
func (g *group) terminate() { g.kill() }

func (g *group) kill() (fresh bool) {
	_ = g.process.Kill()
	return false
}

// alive is false: there is no group, so nothing is left after the program itself.
func (g *group) alive() bool { return false }

func outcome(state *os.ProcessState) (int, string) { return state.ExitCode(), "" }
