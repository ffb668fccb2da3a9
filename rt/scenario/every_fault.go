package scenario

import (
	"fmt"
	"slices"
	"strconv"

	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// MinFaultSpacing is the minimum number of ticks between the starts of two faults from EveryFault.
const MinFaultSpacing = 6

// EveryFault is one fault of every kind of every place that the bench has, as the keys
// of a scenario; round by round of another port, message or element. What the bench has
// nothing for is left out.
func EveryFault(h *bench.Handover, round int) (list []string) {
	places := targetGroups(h)
	for _, k := range faultKinds {
		for i := range places {
			p := &places[i]
			if !slices.Contains(k.of, p.where) {
				continue
			}
			for j := range p.names {
				on := p.names[(round+len(list)+j)%len(p.names)]
				if text := sampleFault(h, k, p.target, on, round); text != "" {
					list = append(list, text)
					break
				}
			}
		}
	}

	return list[:min(len(list), fault.Max)]
}

// targetGroup is where faults can be: a word of faultTargets, and what the bench has there.
type targetGroup struct {
	target string
	where  fault.Where
	names  []string
}

// targetGroups are all of a bench.
func targetGroups(h *bench.Handover) []targetGroup {
	var signals, sent, received []string
	on := make([]string, len(h.Maps))
	for i, bus := range h.Bench.Buses {
		if len(on) > 1 {
			on[i] = " on " + bus.Name.Text
		}
		for _, l := range bus.Send {
			signals = append(signals, l.Message+"."+l.Signal+on[i])
		}
	}

	for _, m := range messagesOf(h) {
		if m.sent {
			sent = append(sent, m.name+on[m.bus])
		} else {
			received = append(received, m.name+on[m.bus])
		}
	}

	return []targetGroup{
		{"input", fault.Input, bench.PortNames(h.Tables.Inputs)},
		{"signal", fault.Signal, signals},
		{"frame", fault.SentFrame, sent},
		{"frame", fault.ReceivedFrame, received},
		{"bus", fault.Bus, h.Bench.BusNames()},
		{"element", element, h.Tables.Frictions},
	}
}

// sampleFault is a fault of a kind as the keys of a scenario, with the first of some values
// that is possible; "": there is none.
func sampleFault(h *bench.Handover, k faultKind, target, on string, round int) string {
	t, err := faultTargets[slices.Index(targetWords(), target)].find(h, on)
	if err != nil {
		return ""
	}
	for _, value := range t.samples(k.takes, round) {
		text := fmt.Sprintf("%s: %s, %s: %s", target, strconv.Quote(on), k.word, value)
		if _, err := Parse("faults", []byte("scenario: faults\nfaults: [{"+text+"}]\n"), h); err == nil {
			return text
		}
	}

	return ""
}

// samples are values of a fault that may be possible, as a scenario writes them; those
// of a value are parts of the range of the target.
func (t *resolvedTarget) samples(takes argument, round int) []string {
	if n := len(takes.examples); n > 0 {
		return slices.Concat(takes.examples[round%n:], takes.examples[:round%n])
	}
	lo, hi := t.fromFault(t.lo), t.fromFault(t.hi)
	if !(hi-lo < 1e9) {
		lo, hi = 0, 1
	}
	v := takes.part * (hi - lo)
	if takes.place > 0 {
		v = lo + takes.place*(hi-lo)
	}
	return []string{fmt.Sprintf("%.6g", v)}
}
