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

// put gives a fault its slot: that of the fault with its name, which it replaces, or the
// first free one.
func (l *FaultSlots) put(f bench.NamedFault) (slot int, err error) {
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
//	fault KEY=VALUE...        see FaultSpec; one that has the name of another takes its place
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
	verbs := map[string]func(*bench.Handover, *FaultSlots, []string) ([]fault.Command, error){
		"fault": faultCommand, "clear": clearCommand, "set": setCommand, "release": releaseCommand,
	}
	if len(words) == 0 || verbs[words[0]] == nil {
		return nil, fmt.Errorf("%.60q is no command that changes a run", line)
	}
	slots := c.Slots
	list, err := verbs[words[0]](c.h, &slots, words[1:])
	if err == nil && len(list) > fault.Max {
		err = fmt.Errorf("%s: %d changes; %d are possible at once", words[0], len(list), fault.Max)
	}
	if err == nil {
		if err = c.h.CheckFaults(list); err != nil {
			err = fmt.Errorf("%s: %w", words[0], err)
		}
	}
	if err != nil {
		return nil, err
	}
	c.Slots = slots
	return list, nil
}

func faultCommand(h *bench.Handover, slots *FaultSlots, words []string) ([]fault.Command, error) {
	spec, err := ParseFault(words)
	if err != nil {
		return nil, err
	}
	c, err := putFault(h, slots, spec)
	return []fault.Command{c}, err
}

// putFault makes the command that arms a fault.
func putFault(h *bench.Handover, slots *FaultSlots, spec FaultSpec) (c fault.Command, err error) {
	if c.Fault, err = ResolveFault(h, spec); err != nil {
		return c, err
	}
	if n := h.Loop.Ticks; n > 0 && c.Fault.Start.Tick > n {
		return c, spec.Errorf(spec.At, "fault: at: %s is after the end of the run, at tick %d: it would never start", spec.At.Text, n)
	}
	c.Slot, err = slots.put(bench.NamedFault{Name: spec.Name.Text, Spec: spec.String()})
	return c, err
}

func clearCommand(h *bench.Handover, slots *FaultSlots, words []string) (list []fault.Command, err error) {
	all := slots.names()
	if len(words) == 1 && words[0] == "all" {
		words = all
	}
	if len(words) == 0 {
		return nil, errors.New("clear: name a fault, or all")
	}
	for _, name := range words {
		slot := slots.find(name)
		if slot < 0 || name == "" {
			return nil, fmt.Errorf("clear: %w", unknown("fault called", name, all))
		}
		slots[slot] = FaultSlot{}
		list = append(list, fault.Command{Op: fault.Clear, Slot: slot})
	}
	return list, nil
}

func setCommand(h *bench.Handover, slots *FaultSlots, words []string) (list []fault.Command, err error) {
	if len(words) == 0 {
		return nil, errors.New("set: PORT=VALUE is missing")
	}
	for i, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("set: %.60q is not PORT=VALUE", w)
		}
		if slices.ContainsFunc(words[:i], func(w string) bool { return strings.HasPrefix(w, name+"=") }) {
			return nil, fmt.Errorf("set: %s is set twice", name)
		}
		c, err := setValue(h, slots, name, value)
		if err != nil {
			return nil, fmt.Errorf("set: %s: %w", name, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// setValue makes the command that gives one thing a value. A signal that no port drives is
// stuck at it, by a fault of its own name.
func setValue(h *bench.Handover, slots *FaultSlots, name, value string) (c fault.Command, err error) {
	i, err := findSettable(h, name)
	if err != nil {
		return c, err
	}
	if i < 0 {
		if c, err = putFault(h, slots, setSpec(name, value)); err == nil {
			slots[c.Slot].Set = true
		}
		return c, err
	}
	t, err := inputTarget(h, name)
	if err != nil {
		return c, err
	}
	c = fault.Command{Op: fault.Drive, Input: i}
	if c.Value, err = t.level(value); err != nil {
		return c, err
	}
	if per := factorOf(t.unit); !(c.Value >= t.lo && c.Value <= t.hi) {
		return c, fmt.Errorf("%s is outside the range of the input, %s", value, bench.WithUnit(fmt.Sprintf("%.9g to %.9g", t.lo/per, t.hi/per), t.unit))
	}
	return c, nil
}

// setSpec is the fault behind `set MESSAGE.SIGNAL=VALUE`.
func setSpec(signal, value string) FaultSpec {
	at := func(text string) yamlfile.Scalar { return yamlfile.Scalar{Text: text, Line: 1} }
	return FaultSpec{
		Name: at(signal), Target: at("signal"), On: at(signal), Kind: at("stuck"), Value: at(value), Origin: bench.CommandOrigin("set"),
	}
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
			return 0, unknown("input", name, names)
		}
		return 0, err
	}
	if port := boundPort(h, m, sig); port != "" || !m.sent {
		why := map[bool]string{true: "output " + port + " drives it", false: "it is received"}[m.sent]
		return 0, fmt.Errorf("%s: use a fault, like fault 'signal=%s' 'stuck=...'", why, name)
	}
	return -1, nil
}

func releaseCommand(h *bench.Handover, slots *FaultSlots, words []string) (list []fault.Command, err error) {
	if len(words) == 1 && words[0] == "all" {
		words = released(h, slots)
	}
	if len(words) == 0 {
		return nil, errors.New("release: name what was set, or all")
	}
	for _, name := range words {
		i, err := findSettable(h, name)
		slot := slots.find(name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("release: %s: %w", name, err)
		case i >= 0:
			list = append(list, fault.Command{Op: fault.Release, Input: i})
		case slot < 0 || !slots[slot].Set:
			return nil, fmt.Errorf("release: %s was not set", name)
		default:
			slots[slot] = FaultSlot{}
			list = append(list, fault.Command{Op: fault.Clear, Slot: slot})
		}
	}
	return list, nil
}

// released is what `release all` releases.
func released(h *bench.Handover, slots *FaultSlots) (names []string) {
	for _, p := range h.Tables.Inputs {
		if drivenBy(h, p.Name) == "" {
			names = append(names, p.Name)
		}
	}
	for _, f := range slots {
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
