package loadtest

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// profiler writes a processor profile of this process for each phase.
type profiler struct {
	prefix string
	round  int
	file   *os.File
}

// start begins the file PREFIX.ENGINE-PHASE-ROUND.pprof. A nil profiler does nothing.
func (p *profiler) start(engine, phase string) error {
	if p == nil {
		return nil
	}
	file, err := os.Create(fmt.Sprintf("%s.%s-%s-%d.pprof", p.prefix, engine, phase, p.round))
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(fmt.Errorf("profile: %w", err), file.Close())
	}
	p.file = file
	return nil
}

func (p *profiler) stop() error {
	if p == nil || p.file == nil {
		return nil
	}
	pprof.StopCPUProfile()
	err := p.file.Close()
	p.file = nil
	return err
}
