package recorder

import (
	"sync"

	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/scenario"
)

// EventLog knows what a record calls the batches and slots that the ring tells of by
// their numbers. It is asked in the order of the ring, and so calls a slot what it was
// called then, whatever has become of it since.
type EventLog struct {
	commands *scenario.Commands
	before   scenario.FaultSlots // the slots before the last command

	mu    sync.Mutex
	lines map[uint64]string // by batch, those that have not been asked for
}

// NewEventLog begins with the faults of the scenario.
func NewEventLog(h *bench.Handover) *EventLog {
	return &EventLog{commands: scenario.NewCommands(h.Clone()), lines: map[uint64]string{}}
}

// Note keeps the line of a batch, before the loop can have it; without a record nobody
// asks for it.
func (c *EventLog) Note(batch uint64, line string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines[batch] = line
}

// Forget takes back what was noted of a batch that the loop will not have.
func (c *EventLog) Forget(batch uint64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lines, batch)
}

// command is the line of a batch that has taken effect, to be asked for once.
func (c *EventLog) command(batch uint64) string {
	c.mu.Lock()
	line := c.lines[batch]
	c.mu.Unlock()
	c.Forget(batch)
	c.before = c.commands.Slots
	_, _ = c.commands.Translate(line) // it was understood once
	return line
}

// Fault is the fault of a slot that has come to a state: "NAME: SPEC".
func (c *EventLog) Fault(slot int, to fault.State) string {
	slots := &c.commands.Slots
	if to == fault.Free { // the command that did that has emptied it
		slots = &c.before
	}
	return slots[slot].String()
}

// tell writes what has become of a fault, or that a command has taken effect.
func (c *Recorder) tell(e *rt.Entry) {
	w := record.Event{Tick: e.Tick}
	if e.Kind == rt.KindCommand {
		w.Kind, w.Text = record.Parameter, c.names.command(e.Batch)
	} else {
		w.Kind, w.Count, w.Text = record.Fault, e.Count, e.State.String()+": "+c.names.Fault(e.Slot, e.State)
	}
	c.put(c.w.Event(&w))
}

// Translate is the commands of a line that has taken effect, at its place among the
// others.
func (c *EventLog) Translate(line string) ([]fault.Command, error) {
	c.before = c.commands.Slots
	return c.commands.Translate(line)
}
