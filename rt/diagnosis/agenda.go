package diagnosis

import (
	"slices"
	"sync"
)

// Agenda is what a scenario asks of the units of a run: each item at its tick, or again and again. The judge of the
// scenario starts and ends items; the ports begin their jobs. All methods may be called by any goroutine; those of a
// nil Agenda do nothing.
type Agenda struct {
	mu    sync.Mutex
	items []*Item
}

// Item is a job of an Agenda.
type Item struct {
	Bus   int
	From  int64 // first tick; Never: when Start says
	To    int64 // last tick; 0: no end
	Every int64 // ticks between two jobs; 0: only one
	Job   Job   // Done is set by the agenda

	next    int64 // tick of the next job
	running bool
	ended   bool
}

// Never is the tick of an item that waits for Start.
const Never = int64(1) << 62

// Result is the outcome of a job at a tick of the run.
type Result struct {
	Bus  int
	Tick int64
	Outcome
}

// Add adds an item.
func (a *Agenda) Add(i *Item) *Item {
	a.mu.Lock()
	defer a.mu.Unlock()
	i.next = i.From
	a.items = append(a.items, i)
	return i
}

// Start lets an item begin at a tick.
func (a *Agenda) Start(i *Item, tick int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i.next = tick
}

// End ends an item. A job that runs is finished.
func (a *Agenda) End(i *Item) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i.ended = true
}

// Begin gives the tester of a bus the jobs that are due at a tick.
func (a *Agenda) Begin(bus int, s *Station, tick int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.items {
		if i.Bus != bus || i.running || i.ended || tick < i.next || i.To > 0 && tick > i.To {
			continue
		}
		j := i.Job
		j.Item = i
		j.Done = func(Outcome) { a.done(i) }
		if s.Add(j) != nil {
			return
		}
		i.running, i.next = true, tick+i.Every
		if i.Every == 0 {
			i.ended = true
		}
	}
	a.items = slices.DeleteFunc(a.items, func(i *Item) bool { return i.ended && !i.running })
}

// done notes the end of a job. The station calls it within Step, outside of Begin.
func (a *Agenda) done(i *Item) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i.running = false
}
