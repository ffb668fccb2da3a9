package rt

import (
	"testing"
	"time"

	"lockstep/sched"
)

// heldUp is a clock whose reader loses its CPU right after it has read it, once.
type heldUp struct {
	*sched.Virtual
	k   int64 // at this grid point
	d   time.Duration
	now int // readings there
}

func (h *heldUp) Now() int64 {
	at := h.Virtual.Now()
	if at == h.k*int64(period) {
		if h.now++; h.now == 1 {
			time.Sleep(h.d)
		}
	}
	return at
}

func TestTimeLostBetweenWakeUpAndReceiveIsInTheLedger(t *testing.T) {
	b := newBench(t, Overrun{Skip, 9}, func(cfg *Config, _ *integrator) { cfg.Budget = 4 * time.Millisecond })
	b.Loop.ticker = &heldUp{Virtual: b.ticker, k: 6, d: 20 * time.Millisecond}
	b.turn(8)
	for i := range b.page.LateCount() {
		var e LateTick
		if b.page.ledger.read(i, &e) && e.Tick == 6 {
			return
		}
	}
	t.Errorf("tick 6 lost 20 ms of its budget of 4 ms and is not among the %d entries", b.page.LateCount())
}
