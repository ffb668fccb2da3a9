package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/io/record"
	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt/fault"
)

// NamedFault is a fault by its name and in the words of a command.
type NamedFault struct {
	Name string
	Spec string
	set  bool // it is there for `set`, not for `fault`
}

// String is the fault as a record tells it.
func (f NamedFault) String() string { return f.Name + ": " + f.Spec }

// faultBook knows which fault is in which slot. It is a function of the scenario's
// faults and of the commands since then, in their order: who reads a record finds the
// same slots as who gave the commands.
type faultBook struct {
	slot [fault.Max]NamedFault // Name "": the slot is free
}

// find returns the slot of the fault called name; -1: there is none.
func (b *faultBook) find(name string) int {
	return slices.IndexFunc(b.slot[:], func(f NamedFault) bool { return f.Name == name })
}

// put gives a fault its slot: that of the one with its name, whose place it takes, or
// the first that is free.
func (b *faultBook) put(f NamedFault) (slot int, err error) {
	if slot = b.find(f.Name); slot < 0 {
		slot = b.find("")
	}
	if slot < 0 {
		return 0, fmt.Errorf("fault: all %d slots are taken: clear one", fault.Max)
	}
	b.slot[slot] = f
	return slot, nil
}

// names lists the faults there are.
func (b *faultBook) names() (list []string) {
	for _, f := range b.slot {
		if f.Name != "" {
			list = append(list, f.Name)
		}
	}
	return list
}

// book is the hand-over's; it begins with the faults of the scenario.
func (h *Handover) book() *faultBook {
	if h.faults == nil {
		h.faults = &faultBook{}
		copy(h.faults.slot[:], h.Named)
	}
	return h.faults
}

// Command translates a line that `lockstep ctl` has sent and that changes the run, words
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
func (h *Handover) Command(line string) ([]fault.Command, error) {
	if len(line) > record.MaxText {
		return nil, fmt.Errorf("a change of %d bytes; a record has room for %d: make two of it", len(line), record.MaxText)
	}
	words, err := splitWords(line)
	if err != nil {
		return nil, err
	}
	verbs := map[string]func(*faultBook, []string) ([]fault.Command, error){
		"fault": h.faultCommand, "clear": h.clearCommand, "set": h.setCommand, "release": h.releaseCommand,
	}
	if len(words) == 0 || verbs[words[0]] == nil {
		return nil, fmt.Errorf("%.60q is no command that changes a run", line)
	}
	book := *h.book()
	list, err := verbs[words[0]](&book, words[1:])
	if err == nil && len(list) > fault.Max {
		err = fmt.Errorf("%s: %d changes; %d are possible at once", words[0], len(list), fault.Max)
	}
	if err == nil {
		if err = h.possible(list); err != nil {
			err = fmt.Errorf("%s: %w", words[0], err)
		}
	}
	if err != nil {
		return nil, err
	}
	*h.faults = book
	return list, nil
}

// possible refuses what the loop would: it cannot say so.
func (h *Handover) possible(list []fault.Command) error {
	if h.engine == nil {
		m, p := len(h.Tables.Inputs), len(h.Tables.Outputs)
		system := fault.System{PeriodNs: h.Tables.PeriodNs, M: m, P: p, Maps: h.Maps, Plant: kernel.New(h.Tables)}
		var err error
		if h.engine, err = fault.New(fault.Plan{Ranges: h.Loop.Faults.Ranges}, system); err != nil {
			return err
		}
	}
	for i := range list {
		if err := h.engine.Check(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (h *Handover) faultCommand(book *faultBook, words []string) ([]fault.Command, error) {
	spec, err := ParseFault(words)
	if err != nil {
		return nil, err
	}
	c, err := h.put(book, spec)
	return []fault.Command{c}, err
}

// put makes the command that arms a fault.
func (h *Handover) put(book *faultBook, spec FaultSpec) (c fault.Command, err error) {
	if c.Fault, err = h.Fault(spec); err != nil {
		return c, err
	}
	if n := h.Loop.Ticks; n > 0 && c.Fault.Start.Tick > n {
		return c, spec.errorf(spec.At, "fault: at: %s is after the end of the run, at tick %d: it would never start", spec.At.Text, n)
	}
	c.Slot, err = book.put(NamedFault{Name: spec.Name.Text, Spec: spec.String()})
	return c, err
}

func (h *Handover) clearCommand(book *faultBook, words []string) (list []fault.Command, err error) {
	all := book.names()
	if len(words) == 1 && words[0] == "all" {
		words = all
	}
	if len(words) == 0 {
		return nil, errors.New("clear: name a fault, or all")
	}
	for _, name := range words {
		slot := book.find(name)
		if slot < 0 || name == "" {
			return nil, fmt.Errorf("clear: %w", unknown("fault called", name, all))
		}
		book.slot[slot] = NamedFault{}
		list = append(list, fault.Command{Op: fault.Clear, Slot: slot})
	}
	return list, nil
}

func (h *Handover) setCommand(book *faultBook, words []string) (list []fault.Command, err error) {
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
		c, err := h.set(book, name, value)
		if err != nil {
			return nil, fmt.Errorf("set: %s: %w", name, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// set makes the command that gives one thing a value. A signal that no port drives is
// stuck at it, by a fault of its own name.
func (h *Handover) set(book *faultBook, name, value string) (c fault.Command, err error) {
	i, err := h.settable(name)
	if err != nil {
		return c, err
	}
	if i < 0 {
		if c, err = h.put(book, setSpec(name, value)); err == nil {
			book.slot[c.Slot].set = true
		}
		return c, err
	}
	t, err := h.inputTarget(name)
	if err != nil {
		return c, err
	}
	c = fault.Command{Op: fault.Drive, Input: i}
	if c.Value, err = t.level(value); err != nil {
		return c, err
	}
	if per := factorOf(t.unit); !(c.Value >= t.lo && c.Value <= t.hi) {
		return c, fmt.Errorf("%s is outside the range of the input, %s", value, withUnit(fmt.Sprintf("%.9g to %.9g", t.lo/per, t.hi/per), t.unit))
	}
	return c, nil
}

// setSpec is the fault behind `set MESSAGE.SIGNAL=VALUE`.
func setSpec(signal, value string) FaultSpec {
	at := func(text string) Word { return Word{Text: text, Line: 1} }
	return FaultSpec{
		Name: at(signal), Target: at("signal"), On: at(signal), Kind: at("stuck"), Value: at(value), origin: origin{"set", true},
	}
}

// settable returns the index of the input called name, if no bus drives it; -1 of a
// signal that is sent and that no port drives.
func (h *Handover) settable(name string) (int, error) {
	if i := index(h.Tables.Inputs, name); i >= 0 {
		if by := h.drivenBy(name); by != "" {
			return 0, fmt.Errorf("%s drives it: use a fault, like fault 'input=%s' 'stuck=...'", by, name)
		}
		return i, nil
	}
	m, sig, err := h.signal(name)
	if err != nil {
		names := portNames(h.Tables.Inputs)
		if near := units.Meant(name, names); near != "" || !strings.Contains(name, ".") {
			return 0, unknown("input", name, names)
		}
		return 0, err
	}
	if port := h.port(m, sig); port != "" || !m.sent {
		why := map[bool]string{true: "output " + port + " drives it", false: "it is received"}[m.sent]
		return 0, fmt.Errorf("%s: use a fault, like fault 'signal=%s' 'stuck=...'", why, name)
	}
	return -1, nil
}

func (h *Handover) releaseCommand(book *faultBook, words []string) (list []fault.Command, err error) {
	if len(words) == 1 && words[0] == "all" {
		words = h.released(book)
	}
	if len(words) == 0 {
		return nil, errors.New("release: name what was set, or all")
	}
	for _, name := range words {
		i, err := h.settable(name)
		slot := book.find(name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("release: %s: %w", name, err)
		case i >= 0:
			list = append(list, fault.Command{Op: fault.Release, Input: i})
		case slot < 0 || !book.slot[slot].set:
			return nil, fmt.Errorf("release: %s was not set", name)
		default:
			book.slot[slot] = NamedFault{}
			list = append(list, fault.Command{Op: fault.Clear, Slot: slot})
		}
	}
	return list, nil
}

// released is what `release all` releases.
func (h *Handover) released(book *faultBook) (names []string) {
	for _, p := range h.Tables.Inputs {
		if h.drivenBy(p.Name) == "" {
			names = append(names, p.Name)
		}
	}
	for _, f := range book.slot {
		if f.set {
			names = append(names, f.Name)
		}
	}
	return names
}

// splitWords takes a line apart as the shell does: blanks part words, '...' is as it is,
// in "..." and outside a backslash makes the next character one like any other.
func splitWords(line string) (words []string, err error) {
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

// quoteWord is a word as splitWords, and the shell, read it.
func quoteWord(w string) string {
	if w != "" && !strings.ContainsAny(w, " \t\r\n'\"\\{}$`*?<>|&;()#~!") {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
