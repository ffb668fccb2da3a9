package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// ShortestFaultGap is how many ticks at least lie between two faults of every kind.
const ShortestFaultGap = 6

// EveryFault is one fault of every kind of every place that the bench has, as the keys
// of a scenario; round by round of another port, message or element. What the bench has
// nothing for is left out.
func EveryFault(h *bench.Handover, round int) (list []string) {
	places := faultPlacesOf(h)
	for _, k := range faultKinds() {
		for i := range places {
			p := &places[i]
			if !slices.ContainsFunc(k.of, func(w fault.Where) bool { return slices.Contains(p.of, w) }) {
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

// faultPlace is where faults can be: a word of faultTargets, and what the bench has there.
type faultPlace struct {
	target string
	of     []fault.Where
	names  []string
}

// faultPlacesOf are all of a bench.
func faultPlacesOf(h *bench.Handover) []faultPlace {
	var signals, sent, received []string
	for i, bus := range h.Bench.Buses {
		on := ""
		if len(h.Maps) > 1 {
			on = " on " + bus.Name.Text
		}
		for _, l := range bus.Send {
			signals = append(signals, l.Message+"."+l.Signal+on)
		}
		for j := range h.Maps[i].Tx {
			sent = append(sent, h.Maps[i].Tx[j].Name+on)
		}
		for j := range h.Maps[i].Rx {
			received = append(received, h.Maps[i].Rx[j].Name+on)
		}
	}
	return []faultPlace{
		{"input", []fault.Where{fault.Input}, bench.PortNames(h.Tables.Inputs)},
		{"signal", []fault.Where{fault.Signal}, signals},
		{"frame", []fault.Where{fault.SentFrame}, sent},
		{"frame", []fault.Where{fault.ReceivedFrame}, received},
		{"bus", []fault.Where{fault.Bus}, h.Bench.BusNames()},
		{"element", []fault.Where{element}, h.Tables.Frictions},
	}
}

// sampleFault is a fault of a kind as the keys of a scenario, with the first of some values
// that is possible; "": there is none.
func sampleFault(h *bench.Handover, k faultKind, target, on string, round int) string {
	spec := FaultSpec{Target: yamlfile.Scalar{Text: target}, On: yamlfile.Scalar{Text: on}}
	t, err := findTarget(h, &spec)
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
func (t *aim) samples(takes taking, round int) []string {
	number := t.number
	if t.own {
		number = func(v float64) float64 { return v }
	}
	lo, hi := number(t.lo), number(t.hi)
	if span := math.Abs(hi - lo); !(span < 1e9) {
		lo, hi = 0, 1
	}
	part := func(x float64) []string { return []string{fmt.Sprintf("%.6g", x)} }
	turned := func(list ...string) []string { return append(list[round%len(list):], list[:round%len(list)]...) }
	switch takes {
	case takesLevel:
		return part(lo + 0.3*(hi-lo))
	case takesDifference:
		return part(0.05 * (hi - lo))
	case takesSpread:
		return part(0.02 * math.Abs(hi-lo))
	case takesRate:
		return part(0.2 * (hi - lo))
	case takesFactor:
		return []string{"1.1"}
	case takesLeak:
		return []string{"{share: 30 %, time: 100 ms}"}
	case takesTime:
		return []string{"2 ticks"}
	case takesRail:
		return turned("ground", "supply")
	case takesChecksum:
		return turned("{offset: 1}", "frozen", "random", "{value: 0}")
	case takesSize:
		return turned("7", "4", "2", "0", "8", "12", "16")
	case takesCount:
		return []string{"3"}
	}
	return []string{"true"}
}
