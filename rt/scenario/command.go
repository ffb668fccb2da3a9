package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/io/record"
	"lockstep/io/yamlfile"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// FaultSlots holds the faults of a run by slot; the Name is "" while a slot is free.
type FaultSlots [fault.Max]bench.NamedFault

// find returns the slot of the fault called name; -1: none.
func (l *FaultSlots) find(name string) int {
	return slices.IndexFunc(l[:], func(f bench.NamedFault) bool { return f.Name == name })
}

// assign puts a fault into a slot: it replaces the fault of the same name, or takes the first free
// slot.
func (l *FaultSlots) assign(f bench.NamedFault) (slot int, err error) {
	if slot = l.find(f.Name); slot < 0 {
		slot = l.find("")
	}
	if slot < 0 {
		return 0, fmt.Errorf("fault: all %d slots are taken: clear one", fault.Max)
	}
	l[slot] = f
	return slot, nil
}

// names returns the names of the faults.
func (l *FaultSlots) names() (list []string) {
	for _, f := range l {
		if f.Name != "" {
			list = append(list, f.Name)
		}
	}

	return list
}

// Commands translates the lines that change one run. The slots depend only on the scenario's faults
// and on the lines translated so far, in their order. A reader of a record therefore finds the
// slots of the run.
type Commands struct {
	h     *bench.Handover
	Slots FaultSlots
	Set   []SetValue // inputs and signals that are set, by name; Translate replaces the list

	Snapshots [fault.MaxSnapshots]string // names of the stored states, by slot; "": none

	changed []string // inputs and signals set by the current line
}

// SetValue is an input or signal that is set, with its value as in the command.
type SetValue struct{ Name, Value string }

// NewCommands returns the Commands of a run that begins with the faults in h.Named.
func NewCommands(h *bench.Handover) *Commands {
	c := &Commands{h: h}
	copy(c.Slots[:], h.Named)
	copy(c.Snapshots[:], h.Snapshots)
	if h.Begin != nil {
		copy(c.Snapshots[:], h.Begin.Snapshots)
	}
	return c
}

// Translate translates a line of `lockstep ctl` that changes the run. Its words are quoted as in a
// shell:
//
//	fault KEY=VALUE...        see faultSpec; replaces the fault of the same name
//	clear NAME... | all
//	set PORT=VALUE...         an input that no bus drives, or a signal sent that no output drives
//	release PORT... | all     return to their own waveforms
//	mark TEXT...              changes nothing; its line is in the record at its tick
//	snapshot NAME             stores the state of the plant; replaces the snapshot of the same name
//	snapshot -delete NAME     deletes a snapshot
//	reset [NAME]              returns the plant to its start, or to a snapshot
//	ignition STATE            enters a state of the ignition; on is run
//	power on | off | VOLTAGE  switches the supply of the unit under test
//
// The commands take effect at one tick. Translate every line that a run has accepted, once and in
// order, because the slots depend on all lines so far. A refused line changes nothing.
func (c *Commands) Translate(line string) ([]fault.Command, error) {
	if len(line) > record.MaxText {
		return nil, fmt.Errorf("the change has %d bytes; a record holds at most %d: split it", len(line), record.MaxText)
	}
	words, err := SplitWords(line)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 || !slices.Contains([]string{"fault", "mark", "snapshot", "reset", "ignition", "power"}, words[0]) && verbs[words[0]].each == nil {
		return nil, fmt.Errorf("%.60q is not a command that changes a run", line)
	}
	next := Commands{h: c.h, Slots: c.Slots, Set: c.Set, Snapshots: c.Snapshots}
	list, err := next.translate(words[0], words[1:])
	if err != nil {
		return nil, err
	}
	if len(list) > fault.Max {
		return nil, fmt.Errorf("%s: %d changes; at most %d are possible at once", words[0], len(list), fault.Max)
	}
	if err := c.h.CheckFaults(list); err != nil {
		return nil, fmt.Errorf("%s: %w", words[0], err)
	}
	c.Slots, c.Set, c.Snapshots = next.Slots, next.Set, next.Snapshots
	return list, nil
}

// verbs are the commands that make one change per argument.
var verbs = map[string]struct {
	missing string                          // error without an argument
	all     func(*Commands) []fault.Command // commands of "all"; nil: no "all"
	each    func(c *Commands, arg string) (fault.Command, error)
}{
	"clear":   {"name a fault, or all", (*Commands).clearAll, (*Commands).clearFault},
	"set":     {"PORT=VALUE is missing", nil, (*Commands).setValue},
	"release": {"name an input or signal that was set, or all", (*Commands).releaseAll, (*Commands).releaseValue},
}

func (c *Commands) translate(name string, words []string) (list []fault.Command, err error) {
	switch name {
	case "fault":
		spec, err := parseFault(words)
		if err != nil {
			return nil, err
		}
		command, err := c.armFault(spec)
		return []fault.Command{command}, err
	case "mark":
		if strings.TrimSpace(strings.Join(words, "")) == "" {
			return nil, errors.New("mark: the text is missing")
		}
		return nil, nil
	case "ignition", "power":
		command, err := switchCommand(c.h, name, strings.Join(words, " "))
		if name == "power" && !c.h.Loop.Virtual && c.h.Bench.Power == nil { // the loop would accept it, and nothing would switch
			err = errNoPower
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return []fault.Command{command}, err
	case "snapshot", "reset":
		command, err := c.storeOrReset(name, words)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return []fault.Command{command}, err
	}

	verb := verbs[name]
	switch {
	case len(words) == 1 && words[0] == "all" && verb.all != nil:
		return verb.all(c), nil
	case len(words) == 0:
		return nil, fmt.Errorf("%s: %s", name, verb.missing)
	}
	for _, w := range words {
		command, err := verb.each(c, w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, command)
	}

	return list, nil
}

// storeOrReset returns the command of `snapshot [-delete] NAME` or `reset [NAME]`.
func (c *Commands) storeOrReset(name string, words []string) (fault.Command, error) {
	reset := fault.Command{Op: fault.Restore, Slot: -1}
	deletes := name == "snapshot" && len(words) > 0 && words[0] == "-delete"
	if deletes {
		words = words[1:]
	}
	switch {
	case len(words) > 1:
		return reset, fmt.Errorf("expected one name, got %d words", len(words))
	case len(words) == 0 && name == "reset":
		return reset, nil
	case len(words) == 0:
		return reset, errors.New("the name is missing")
	}
	of := words[0]
	var names []string
	for _, n := range c.Snapshots {
		if n != "" {
			names = append(names, n)
		}
	}
	slot := slices.Index(c.Snapshots[:], of)
	switch {
	case checkSnapshotName(of) != nil:
		return reset, checkSnapshotName(of)
	case slot < 0 && (name == "reset" || deletes):
		return reset, unknownName("snapshot", of, names)
	case deletes && slices.Contains(c.h.Snapshots, of):
		return reset, fmt.Errorf("the scenario uses %s", of)
	case deletes:
		c.Snapshots[slot] = ""
		return fault.Command{Op: fault.DropSnapshot, Slot: slot}, nil
	case name == "reset":
		reset.Slot = slot
		return reset, nil
	case slot < 0 && len(names) == len(c.Snapshots):
		return reset, fmt.Errorf("a run stores %d snapshots: take one of their names again, or delete one: %s", len(names), strings.Join(names, ", "))
	case slot < 0:
		slot = slices.Index(c.Snapshots[:], "")
	}
	c.Snapshots[slot] = of
	return fault.Command{Op: fault.TakeSnapshot, Slot: slot}, nil
}

// armFault returns the command that arms a fault.
func (c *Commands) armFault(spec *faultSpec) (command fault.Command, err error) {
	err = spec.Try(func() {
		command.Fault = spec.resolve(c.h)
		if n := c.h.Loop.Ticks; n > 0 && command.Fault.Start.Tick > n {
			at := spec.get("at")
			spec.fail(at, "at: %s is after the end of the run, at tick %d: the fault would never start", at.Text, n)
		}
	})
	if err != nil {
		return command, err
	}
	command.Slot, err = c.Slots.assign(bench.NamedFault{Name: spec.Name.Text, Spec: spec.String()})
	return command, err
}

func (c *Commands) clearFault(name string) (fault.Command, error) {
	slot := c.Slots.find(name)
	if slot < 0 || name == "" {
		return fault.Command{}, unknownName("fault called", name, c.Slots.names())
	}
	c.Slots[slot] = bench.NamedFault{}
	return fault.Command{Op: fault.Clear, Slot: slot}, nil
}

// clearAll returns the commands that clear all faults.
func (c *Commands) clearAll() (list []fault.Command) {
	for slot := range c.Slots {
		if f := &c.Slots[slot]; f.Name != "" {
			*f, list = bench.NamedFault{}, append(list, fault.Command{Op: fault.Clear, Slot: slot})
		}
	}
	return list
}

// setValue returns the command that sets an input or a signal.
func (c *Commands) setValue(arg string) (command fault.Command, err error) {
	name, value, ok := strings.Cut(arg, "=")
	if !ok || name == "" || value == "" {
		return command, fmt.Errorf("%.60q is not PORT=VALUE", arg)
	}
	t, err := findStimulus(c.h, name, func(by, target string) error {
		return fmt.Errorf("%s: use a fault, like fault '%s' 'stuck=...'", by, target)
	})
	switch {
	case err != nil:
	case slices.Contains(c.changed, t.name):
		return command, fmt.Errorf("%s is set twice", name)
	default:
		c.changed = append(c.changed, t.name)
		command = t.drive(fault.Drive)
		command.Value, err = t.parseStimulus(value)
		command.Raw, command.Whole = t.parseWhole(value, command.Value)
	}

	if err != nil {
		return command, fmt.Errorf("%.60s: %w", name, err)
	}
	if c.noteSet(t.name, value); len(c.Set) > fault.MaxSet {
		return command, fmt.Errorf("%s: %d inputs and signals are set already: release some", name, fault.MaxSet)
	}
	return command, nil
}

// noteSet notes in Set that an input or signal has a value.
func (c *Commands) noteSet(name, value string) {
	c.Set = append(c.withoutSet(name), SetValue{name, value})
	slices.SortFunc(c.Set, func(a, b SetValue) int { return strings.Compare(a.Name, b.Name) })
}

// Restore notes what an earlier supervisor of the run has set, with values in their declared units, and
// the snapshots that it has taken.
func (c *Commands) Restore(status *rt.StatusBlock) {
	for slot, s := range status.Snapshots() {
		if s.Tick != 0 {
			c.Snapshots[slot] = s.Name
		}
	}
	for _, v := range status.SetValues() {
		name := ""
		if v.Fault.Where == fault.Input {
			name = c.h.Tables.Inputs[v.Input].Name
		} else {
			tx := &c.h.Maps[v.Fault.Bus].Tx[v.Fault.Message]
			name = tx.Name + "." + tx.Fields[v.Fault.Field].Name + onBus(c.h, v.Fault.Bus)
		}
		t, err := findStimulus(c.h, name, func(by, _ string) error { return errors.New(by) })
		if err == nil { // the loop has taken the command
			c.noteSet(t.name, t.Format(t.toSI(v.Value)))
		}
	}
}

// withoutSet returns a copy of Set without the input or signal called name.
func (c *Commands) withoutSet(name string) []SetValue {
	return slices.DeleteFunc(slices.Clone(c.Set), func(v SetValue) bool { return v.Name == name })
}

func (c *Commands) releaseValue(name string) (fault.Command, error) {
	t, err := findStimulus(c.h, name, func(by, _ string) error { return errors.New(by) })
	if err != nil {
		return fault.Command{}, fmt.Errorf("%.60s: %w", name, err)
	}
	c.Set = c.withoutSet(t.name)
	return t.drive(fault.Release), nil
}

func (c *Commands) releaseAll() []fault.Command {
	c.Set = nil
	return []fault.Command{{Op: fault.ReleaseAll}}
}

// ParseRequest returns the words of a request. A character that cannot be printed is an error.
func ParseRequest(line string) ([]string, error) {
	if !yamlfile.IsPrintable(line) {
		return nil, errors.New("the request has characters that cannot be printed")
	}
	return SplitWords(line)
}

// SplitWords splits a line into words as a shell does: at blanks outside of quotes. Text in '...'
// is literal. In "..." and outside of quotes, a backslash makes the next character literal.
func SplitWords(line string) (words []string, err error) {
	var word strings.Builder
	in, open, escaped := false, rune(0), false
	for _, c := range line {
		switch {
		case escaped:
			if open == '"' && c != '"' && c != '\\' && c != '$' && c != '`' {
				word.WriteByte('\\')
			}
			word.WriteRune(c)
			escaped = false
		case c == '\\' && open != '\'':
			in, escaped = true, true
		case open != 0 && c == open:
			open = 0
		case open == 0 && (c == '\'' || c == '"'):
			in, open = true, c
		case open == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			in = true
			word.WriteRune(c)
		}
	}

	if open != 0 || escaped {
		return nil, errors.New("a quotation is not closed")
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// QuoteWord quotes a word for SplitWords and for the shell.
func QuoteWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\r\n'\"\\{}$`*?<>|&;()#~!") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
