package scenario

import (
	"fmt"
	"slices"
	"strconv"

	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// MinFaultSpacing is the minimum number of ticks between the starts of two faults from EveryFault.
const MinFaultSpacing = 6

// EveryFault returns one fault of every kind on every group of targets of the bench, as the keys of
// a scenario. Each round takes other ports, messages and elements. Kinds that the bench has no
// target for are left out.
func EveryFault(h *bench.Handover, round int) (list []string) {
	groups := targetGroups(h)
	for _, k := range faultKinds {
		for i := range groups {
			g := &groups[i]
			if !slices.Contains(k.targets, g.where) {
				continue
			}
			for j := range g.names {
				name := g.names[(round+len(list)+j)%len(g.names)]
				if text := sampleFault(h, k, g.key, name, round); text != "" {
					list = append(list, text)
					break
				}
			}
		}
	}

	return list[:min(len(list), fault.Max)]
}

// targetGroup is the targets of a bench of one kind.
type targetGroup struct {
	key   string // key of faultTargets
	where fault.Where
	names []string
}

// targetGroups returns all targets of a bench.
func targetGroups(h *bench.Handover) []targetGroup {
	var signals, receivedSignals, sent, received []string
	on := make([]string, len(h.Maps))
	for i, bus := range h.Bench.Buses {
		if len(on) > 1 {
			on[i] = " on " + bus.Name.Text
		}
		for _, l := range bus.Send {
			signals = append(signals, l.Message+"."+l.Signal+on[i])
		}
		for _, l := range bus.Receive {
			receivedSignals = append(receivedSignals, l.Message+"."+l.Signal+on[i])
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
		{"signal", fault.ReceivedSignal, receivedSignals},
		{"frame", fault.SentFrame, sent},
		{"frame", fault.ReceivedFrame, received},
		{"bus", fault.Bus, h.Bench.BusNames()},
		{"element", element, h.Tables.Frictions},
	}
}

// sampleFault returns a fault of a kind as the keys of a scenario, with the first sample value that
// the target accepts; "": none.
func sampleFault(h *bench.Handover, k faultKind, key, name string, round int) string {
	t, err := faultTargets[slices.Index(targetKeys(), key)].find(h, name)
	if err != nil {
		return ""
	}
	for _, value := range t.samples(k.argument, round) {
		text := fmt.Sprintf("%s: %s, %s: %s", key, strconv.Quote(name), k.key, value)
		if _, err := Parse("faults", []byte("scenario: faults\nfaults: [{"+text+"}]\n"), h); err == nil {
			return text
		}
	}

	return ""
}

// samples returns values to try for an argument, as a scenario writes them.
func (t *resolvedTarget) samples(arg argument, round int) []string {
	if n := len(arg.examples); n > 0 {
		return slices.Concat(arg.examples[round%n:], arg.examples[:round%n])
	}
	lo, hi := t.FromSI(t.toSI(t.lo)), t.FromSI(t.toSI(t.hi))
	if !(hi-lo < 1e9) {
		lo, hi = 0, 1
	}
	v, unit := arg.share*(hi-lo), t.Difference().Spelled
	if arg.level > 0 {
		v, unit = lo+arg.level*(hi-lo), t.Spelled
	}
	if t.TakesBare() {
		unit = ""
	}
	text := units.WithUnit(fmt.Sprintf("%.6g", v), unit)
	if arg.perSecond {
		text += "/s"
	}
	return []string{text}
}
