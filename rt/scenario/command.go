package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/io/record"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// FaultSlot is the fault in a slot; its Name is "" while the slot is free.
type FaultSlot struct {
	bench.NamedFault
	Set bool // made by `set`, not by `fault`
}

// FaultSlots holds the faults of a run by slot.
type FaultSlots [fault.Max]FaultSlot

// find returns the slot of the fault called name; -1: none.
func (l *FaultSlots) find(name string) int {
	return slices.IndexFunc(l[:], func(f FaultSlot) bool { return f.Name == name })
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
	l[slot] = FaultSlot{NamedFault: f}
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
	set   []string // ports set by the current line
}

// NewCommands returns the Commands of a run that begins with the faults in h.Named.
func NewCommands(h *bench.Handover) *Commands {
	c := &Commands{h: h}
	for slot, f := range h.Named {
		c.Slots[slot].NamedFault = f
	}
	return c
}

// Translate translates a line of `lockstep ctl` that changes the run. Its words are quoted as in a
// shell:
//
//	fault KEY=VALUE...        see faultSpec; replaces the fault of the same name
//	clear NAME... | all
//	set PORT=VALUE...         an input that no bus drives, or a MESSAGE.SIGNAL that no port drives
//	release PORT... | all     return to their own waveforms
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
	if len(words) == 0 || words[0] != "fault" && verbs[words[0]].each == nil {
		return nil, fmt.Errorf("%.60q is not a command that changes a run", line)
	}
	next := Commands{h: c.h, Slots: c.Slots}
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
	c.Slots = next.Slots
	return list, nil
}

// verbs are the commands that make one change per argument.
var verbs = map[string]struct {
	missing string                   // error without an argument
	all     func(*Commands) []string // arguments that "all" stands for; nil: no "all"
	each    func(c *Commands, arg string) (fault.Command, error)
}{
	"clear":   {"name a fault, or all", func(c *Commands) []string { return c.Slots.names() }, (*Commands).clearFault},
	"set":     {"PORT=VALUE is missing", nil, (*Commands).setValue},
	"release": {"name an input or signal that was set, or all", (*Commands).settable, (*Commands).releaseInput},
}

func (c *Commands) translate(name string, words []string) (list []fault.Command, err error) {
	if name == "fault" {
		spec, err := parseFault(words)
		if err != nil {
			return nil, err
		}
		command, err := c.armFault(spec)
		return []fault.Command{command}, err
	}

	verb := verbs[name]
	if len(words) == 1 && words[0] == "all" && verb.all != nil {
		words = verb.all(c)
	}
	if len(words) == 0 {
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
	c.Slots[slot] = FaultSlot{}
	return fault.Command{Op: fault.Clear, Slot: slot}, nil
}

// setValue returns the command that sets an input or a signal. For a signal it is a fault `stuck`
// that has the name of the signal.
func (c *Commands) setValue(arg string) (command fault.Command, err error) {
	name, value, ok := strings.Cut(arg, "=")
	switch {
	case !ok || name == "" || value == "":
		return command, fmt.Errorf("%.60q is not PORT=VALUE", arg)
	case slices.Contains(c.set, name):
		return command, fmt.Errorf("%s is set twice", name)
	}

	c.set = append(c.set, name)
	i, err := findSettable(c.h, name)
	switch {
	case err != nil:
	case i >= 0:
		command, err = driveInput(c.h, i, value)
	default:
		if command, err = c.armFault(setSpec(name, value)); err == nil {
			c.Slots[command.Slot].Set = true
		}
	}

	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return command, err
}

// driveInput returns the command that sets an input.
func driveInput(h *bench.Handover, input int, value string) (fault.Command, error) {
	t := targetOfInput(h, input)
	v, err := t.parseLevel(value)
	if lo, hi := h.Tables.Inputs[input].Accepted(); err == nil && !(v >= lo && v <= hi) {
		err = fmt.Errorf("%s is outside the range of the input, %s", value, formatRange(lo, hi, t.Wanted))
	}
	return fault.Command{Op: fault.Drive, Input: input, Value: v}, err
}

// setSpec returns the fault for `set MESSAGE.SIGNAL=VALUE`.
func setSpec(signal, value string) *faultSpec {
	e := &entry{Reader: bench.NewCommandReader("set"), what: "fault"}
	for _, w := range [][2]string{{"name", signal}, {"signal", signal}, {"stuck", value}} {
		e.add(w[0], yamlfile.Scalar{Text: w[1], Line: 1})
	}
	return newFaultSpec(e)
}

// findSettable returns the index of the input called name, which no bus drives; -1 if name is a
// sent signal that no port drives.
func findSettable(h *bench.Handover, name string) (int, error) {
	if i := bench.PortIndex(h.Tables.Inputs, name); i >= 0 {
		if by := drivenBy(h, name); by != "" {
			return 0, fmt.Errorf("%s drives the input: use a fault, like fault 'input=%s' 'stuck=...'", by, name)
		}
		return i, nil
	}

	m, sig, err := findSignal(h, name)
	if err != nil {
		names := bench.PortNames(h.Tables.Inputs)
		if near := units.Meant(name, names); near != "" || !strings.Contains(name, ".") {
			return 0, unknownName("input", name, names)
		}
		return 0, err
	}

	if port := portOf(h, m, sig); port != "" || !m.sent {
		why := map[bool]string{true: "output " + port + " drives the signal", false: "the signal is received"}[m.sent]
		return 0, fmt.Errorf("%s: use a fault, like fault 'signal=%s' 'stuck=...'", why, name)
	}

	return -1, nil
}

func (c *Commands) releaseInput(name string) (fault.Command, error) {
	i, err := findSettable(c.h, name)
	slot := c.Slots.find(name)
	switch {
	case err != nil:
		return fault.Command{}, fmt.Errorf("%s: %w", name, err)
	case i >= 0:
		return fault.Command{Op: fault.Release, Input: i}, nil
	case slot < 0 || !c.Slots[slot].Set:
		return fault.Command{}, fmt.Errorf("%s was not set", name)
	}

	return c.clearFault(name)
}

// settable returns the inputs and signals that `release all` releases.
func (c *Commands) settable() (names []string) {
	for _, p := range c.h.Tables.Inputs {
		if drivenBy(c.h, p.Name) == "" {
			names = append(names, p.Name)
		}
	}

	for _, f := range c.Slots {
		if f.Set {
			names = append(names, f.Name)
		}
	}

	return names
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
