package recorder

import (
	"strings"
	"sync"

	"lockstep/io/record"
	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/scenario"
)

// EventLog names the batches and slots that the ring reports by number. Its methods are called in
// the order of the ring, so a slot gets the name that it had at that tick.
type EventLog struct {
	commands *scenario.Commands
	before   scenario.FaultSlots // slots before the last command

	tables *bench.TableCoder // of the running record
	active ParameterSet      // the last change in effect
	lines  sync.Map          // command line by batch, until it is taken
	sets   sync.Map          // ParameterSet by the number of its offer, until it is decided
}

// ParameterSet is a change of parameters while the run lasts.
type ParameterSet struct {
	Line   string          // its parameters: "param m_car=2000kg mu=0.09"
	Tables *bench.TableSet // of the plant with all parameters in effect
}

// KeepSet keeps a change. Call it before its tables are offered; a nil log keeps nothing.
func (c *EventLog) KeepSet(offer uint64, set ParameterSet) {
	if c != nil {
		c.sets.Store(offer, set)
	}
}

// digestWord begins the word that follows the parameters of a change in a record: the digest of its tables.
const digestWord = " tables="

// writeOffer writes a change of parameters that is in effect or refused.
func (c *Recorder) writeOffer(e *rt.Entry) {
	kept, _ := c.eventLog.sets.LoadAndDelete(e.Batch)
	set, ok := kept.(ParameterSet)
	if !ok {
		return
	}
	if !e.Refused {
		c.eventLog.active = set
	}
	switch {
	case c.w == nil:
	case e.Refused:
		c.noteFirstError(c.w.Event(&record.Event{Kind: record.Note, Tick: e.Tick, Count: e.Batch,
			Text: set.Line + " refused: " + set.Tables.Tables[0].Describe(kernel.Obstacle(e.Obstacle))}))
	default:
		c.writeSet(&set, e.Tick, e.Batch)
	}
}

// writeSet writes a change of parameters that is in effect from a tick on.
func (c *Recorder) writeSet(set *ParameterSet, tick int64, offer uint64) {
	data, err := c.eventLog.tables.Encode(set.Tables)
	if err == nil {
		err = c.w.Tables(data)
	}
	c.noteError(err)
	c.noteFirstError(c.w.Event(&record.Event{Kind: record.Parameter, Tick: tick, Count: offer,
		Text: set.Line + digestWord + bench.DigestOfData(set.Tables)}))
}

// DigestOfSet returns the digest of the tables of a change of parameters in a record, by the text of its event;
// "": there is no such event.
func DigestOfSet(text string) string {
	_, digest, _ := strings.Cut(text, digestWord)
	if !strings.HasPrefix(text, "param ") {
		return ""
	}
	return digest
}

// NewEventLog returns a log that knows the faults of the scenario.
func NewEventLog(h *bench.Handover) *EventLog {
	return &EventLog{commands: scenario.NewCommands(h.Clone())}
}

// KeepLine keeps the line of a batch. Call it before the batch is posted; a nil log keeps nothing.
func (c *EventLog) KeepLine(batch uint64, line string) {
	if c != nil {
		c.lines.Store(batch, line)
	}
}

// DropLine drops the line of a batch that was not posted.
func (c *EventLog) DropLine(batch uint64) {
	if c != nil {
		c.lines.Delete(batch)
	}
}

// takeLine returns the line of a batch that has taken effect, and drops it.
func (c *EventLog) takeLine(batch uint64) string {
	kept, _ := c.lines.LoadAndDelete(batch)
	line, _ := kept.(string)
	_, _ = c.Translate(line) // the line was translated without an error before
	return line
}

// FaultText returns the name and text of the fault whose slot has changed to a state: "NAME: SPEC".
func (c *EventLog) FaultText(slot int, to fault.State) string {
	slots := &c.commands.Slots
	if to == fault.Free { // the command has emptied the slot already
		slots = &c.before
	}
	return slots[slot].String()
}

// writeEvent writes a change of a fault's state, or that a command has taken effect.
func (c *Recorder) writeEvent(e *rt.Entry) {
	w := record.Event{Tick: e.Tick}
	if e.Kind == rt.KindCommand {
		w.Kind, w.Text = record.Parameter, c.eventLog.takeLine(e.Batch)
		if c.applySwitch(e) {
			return
		}
		if e.Refused {
			w.Kind = record.Note
			w.Text += " refused: " + c.Handover.Tables.Describe(kernel.Obstacle(e.Obstacle))
		}
	} else {
		w.Kind, w.Count, w.Text = record.Fault, e.Count, e.State.String()+": "+c.eventLog.FaultText(e.Slot, e.State)
	}

	if c.w != nil {
		c.noteFirstError(c.w.Event(&w))
	}
}

// Translate returns the commands of a line that has taken effect; call it in the order of effect.
func (c *EventLog) Translate(line string) ([]fault.Command, error) {
	c.before = c.commands.Slots
	return c.commands.Translate(line)
}
