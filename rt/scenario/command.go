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
	Set bool // by `set`, not by `fault`
}

// FaultSlots says which fault is in which slot.
type FaultSlots [fault.Max]FaultSlot

// find returns the slot of the fault called name; -1: there is none.
func (l *FaultSlots) find(name string) int {
	return slices.IndexFunc(l[:], func(f FaultSlot) bool { return f.Name == name })
}

// assign gives a fault its slot: that of the fault with its name, which it replaces, or the
// first free one.
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

// names lists the faults there are.
func (l *FaultSlots) names() (list []string) {
	for _, f := range l {
		if f.Name != "" {
			list = append(list, f.Name)
		}
	}

	return list
}

// Commands translates the lines that change one run. Its slots are a function of the
// scenario's faults and of the lines translated since, in their order: the reader of a
// record finds the same slots as the run that took the lines.
type Commands struct {
	h     *bench.Handover
	Slots FaultSlots
	set   []string // what the line at hand has set
}

// NewCommands returns the commands of a run that begins with the faults of its scenario.
func NewCommands(h *bench.Handover) *Commands {
	c := &Commands{h: h}
	for slot, f := range h.Named {
		c.Slots[slot].NamedFault = f
	}
	return c
}

// Translate translates a line that `lockstep ctl` has sent and that changes the run, words
// as the shell quotes them:
//
//	fault KEY=VALUE...        see faultSpec; one that has the name of another takes its place
//	clear NAME... | all
//	set PORT=VALUE...         an input that no bus drives, or a MESSAGE.SIGNAL that no port drives
//	release PORT... | all     their own sources again
//
// What it returns takes effect at one tick. The slots follow from all lines so far, so
// each line that a run has taken must be translated once, in their order; one that is
// refused changes nothing.
func (c *Commands) Translate(line string) ([]fault.Command, error) {
	if len(line) > record.MaxText {
		return nil, fmt.Errorf("a change of %d bytes; a record has room for %d: make two of it", len(line), record.MaxText)
	}
	words, err := SplitWords(line)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 || words[0] != "fault" && verbs[words[0]].each == nil {
		return nil, fmt.Errorf("%.60q is no command that changes a run", line)
	}
	next := Commands{h: c.h, Slots: c.Slots}
	list, err := next.translate(words[0], words[1:])
	if err != nil {
		return nil, err
	}
	if len(list) > fault.Max {
		return nil, fmt.Errorf("%s: %d changes; %d are possible at once", words[0], len(list), fault.Max)
	}
	if err := c.h.CheckFaults(list); err != nil {
		return nil, fmt.Errorf("%s: %w", words[0], err)
	}
	c.Slots = next.Slots
	return list, nil
}

// verbs are the commands that change one thing with each of their words.
var verbs = map[string]struct {
	missing string                   // said where there is no word
	all     func(*Commands) []string // the words that "all" stands for; nil: it is no such word
	each    func(c *Commands, word string) (fault.Command, error)
}{
	"clear":   {"name a fault, or all", func(c *Commands) []string { return c.Slots.names() }, (*Commands).clearFault},
	"set":     {"PORT=VALUE is missing", nil, (*Commands).setValue},
	"release": {"name what was set, or all", (*Commands).settable, (*Commands).releaseInput},
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

// armFault makes the command that arms a fault.
func (c *Commands) armFault(spec *faultSpec) (command fault.Command, err error) {
	err = spec.Try(func() {
		command.Fault = spec.resolve(c.h)
		if n := c.h.Loop.Ticks; n > 0 && command.Fault.Start.Tick > n {
			at := spec.get("at")
			spec.fail(at, "at: %s is after the end of the run, at tick %d: it would never start", at.Text, n)
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

// setValue makes the command that gives one thing a value. A signal that no port drives is
// stuck at it, by a fault of its own name.
func (c *Commands) setValue(word string) (command fault.Command, err error) {
	name, value, ok := strings.Cut(word, "=")
	switch {
	case !ok || name == "" || value == "":
		return command, fmt.Errorf("%.60q is not PORT=VALUE", word)
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

// driveInput makes the command that gives an input a value.
func driveInput(h *bench.Handover, input int, value string) (fault.Command, error) {
	t := targetOfInput(h, input)
	v, err := t.parseLevel(value)
	if per := factorOf(t.unit); err == nil && !(v >= t.lo && v <= t.hi) {
		err = fmt.Errorf("%s is outside the range of the input, %s", value, formatRange(t.lo/per, t.hi/per, t.unit))
	}
	return fault.Command{Op: fault.Drive, Input: input, Value: v}, err
}

// setSpec is the fault behind `set MESSAGE.SIGNAL=VALUE`.
func setSpec(signal, value string) *faultSpec {
	e := &entry{Reader: bench.NewCommandReader("set"), what: "fault"}
	for _, w := range [][2]string{{"name", signal}, {"signal", signal}, {"stuck", value}} {
		e.add(w[0], yamlfile.Scalar{Text: w[1], Line: 1})
	}
	return newFaultSpec(e)
}

// findSettable returns the index of the input called name, if no bus drives it; -1 of a
// signal that is sent and that no port drives.
func findSettable(h *bench.Handover, name string) (int, error) {
	if i := bench.PortIndex(h.Tables.Inputs, name); i >= 0 {
		if by := drivenBy(h, name); by != "" {
			return 0, fmt.Errorf("%s drives it: use a fault, like fault 'input=%s' 'stuck=...'", by, name)
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
		why := map[bool]string{true: "output " + port + " drives it", false: "it is received"}[m.sent]
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

// settable is what `release all` releases.
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

// ParseRequest returns the words of a request, which has none but printable characters.
func ParseRequest(line string) ([]string, error) {
	if !yamlfile.IsPrintable(line) {
		return nil, errors.New("the request has characters that cannot be printed")
	}
	return SplitWords(line)
}

// SplitWords takes a line apart as the shell does: blanks part words, '...' is as it is,
// in "..." and outside a backslash makes the next character one like any other.
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

// QuoteWord is a word as SplitWords, and the shell, read it.
func QuoteWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\r\n'\"\\{}$`*?<>|&;()#~!") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
