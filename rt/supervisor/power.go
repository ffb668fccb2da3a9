package supervisor

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/network"
	"lockstep/sched"
)

// power switches the supply of the unit under test when the loop says so. It is idle until opened.
type power struct {
	spec   *network.SupplySpec
	by     network.Switch
	status *rt.StatusBlock
	next   uint64 // number of the next change
	stop   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	events []record.Event
	taken  int    // events already returned
	failed string // failure that ends the run; "": none
	lines  []string
}

// powerInterval is the time between two looks for a change of the supply.
const powerInterval = time.Millisecond

// open opens the switch and puts the supply on, before the run. In a run that was taken over, serve makes the last
// change of the run again: the supervisor before may have ended without it.
func (p *power) open(spec *network.SupplySpec, status *rt.StatusBlock) (err error) {
	p.status, p.next = status, status.SupplyChanges()
	if spec == nil {
		p.spec, p.by = &network.SupplySpec{}, noSupply{}
		return nil
	}
	now, changed := network.SupplyOn, p.next > 0 // a run that was taken over may have changes
	if changed {
		p.next--
		s, _ := status.NextSupply(p.next)
		now = network.Supply(s)
	}
	if p.by, err = spec.Open(now); err != nil {
		return fmt.Errorf("power: %w", err)
	}
	if p.spec = spec; changed {
		return nil
	}
	if err := p.by.Set(now); err != nil {
		return fmt.Errorf("power: the supply cannot be switched on: %w", err)
	}
	return nil
}

// noSupply is the supply of a bench without the section power.
type noSupply struct{}

// Set refuses each change.
func (noSupply) Set(network.Supply) error {
	return errors.New("the bench switches no supply in real time: give its file the section power, like power: {exec: ./supply.sh}")
}

// Close does nothing.
func (noSupply) Close() error { return nil }

// serve follows the changes until close.
func (p *power) serve() {
	if p.by == nil {
		return
	}
	p.stop, p.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.done)
		clock := time.NewTicker(powerInterval)
		defer clock.Stop()
		for {
			for {
				s, ok := p.status.NextSupply(p.next)
				if !ok {
					break
				}
				p.next++
				p.set(network.Supply(s))
			}
			select {
			case <-p.stop:
				return
			case <-clock.C:
			}
		}
	}()
}

// set switches the supply and notes when that was done, or why not.
func (p *power) set(s network.Supply) {
	begun := sched.Now()
	err := p.by.Set(s)
	text := fmt.Sprintf("power %s: done by %s after %v", s, p.spec.Name(), time.Duration(sched.Now()-begun).Round(100*time.Microsecond))
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		text = fmt.Sprintf("power %s failed: %v", s, err)
		if p.spec.Stop && p.failed == "" {
			p.failed = text
		}
		if len(p.lines) < maxClaimEvents {
			p.lines = append(p.lines, text)
		}
	}
	if len(p.events) < maxClaimEvents {
		p.events = append(p.events, record.Event{Kind: record.Note, Tick: int64(p.status.Ticks.Load()), Time: sched.Realtime(), Text: text})
	}
}

// takeEvents returns the events since the last call.
func (p *power) takeEvents() []record.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.events[p.taken:]
	p.taken = len(p.events)
	return list
}

// endReason returns the failure that ends the run; "": none.
func (p *power) endReason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// takeLines returns the failures since the last call, one line each.
func (p *power) takeLines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.lines
	p.lines = nil
	return list
}

// close ends serve after the change at hand, and releases the supply as it is.
func (p *power) close() {
	if p.stop != nil {
		close(p.stop)
		<-p.done
		p.stop = nil
	}
	if p.by != nil {
		_ = p.by.Close()
		p.by = nil
	}
}
