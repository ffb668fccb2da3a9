package codegen

import (
	"sync"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
)

// What the tests outside the package need of its inside: they run a simulation, which
// imports it.
var (
	BuildFMUWith = buildFMU
	WrapFMU      = (*Job).wrap
	Token        = (*Job).token
	Period       = (*Job).period
	COf          = cOf
)

// onGrid are the jobs of OnGrid.
var onGrid sync.Map

// OnGrid is the job of an embedded plant on a grid, prepared once.
func OnGrid(t testing.TB, name string, period time.Duration) Job {
	t.Helper()
	key := name + period.String()
	if j, ok := onGrid.Load(key); ok {
		return j.(Job)
	}
	s := embedded(t, name, name, func(_ *model.System, opt *kernel.Options) { opt.Period = period })
	j := s.job()
	onGrid.Store(key, j)
	return j
}
