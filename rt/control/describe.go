package control

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/strictjson"
	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
	"lockstep/rt/traffic"
)

// Description is what a run offers: its signals and commands. All other requests use these names.
type Description struct {
	Bench    string    `json:"bench"`
	Plant    string    `json:"plant"`
	Period   float64   `json:"period_s"` // of the grid, s
	Signals  []*Signal `json:"signals"`
	Commands []Command `json:"commands"`

	byName   map[string]*Signal
	bus      int // bus signals
	messages map[traffic.Key][]*busSignal
	buses    *traffic.Buses
}

// Kind is the kind of a signal.
type Kind string

// The kinds.
const (
	InputKind  Kind = "input"  // input of the plant
	OutputKind Kind = "output" // output of the plant, such as the mode of a friction element
	BusKind    Kind = "bus"    // signal of a message on a bus: MESSAGE.SIGNAL, or MESSAGE.SIGNAL on BUS
	HealthKind Kind = "health" // figure of the loop

	ParameterKind Kind = "parameter" // parameter of the plant
)

// Signal is a number that can be read at each tick. Its values are in its unit: the one that the plant
// file or the database declares.
type Signal struct {
	Name      string   `json:"name"`
	Kind      Kind     `json:"kind"`
	Direction string   `json:"direction"` // "in": from the control unit or to the plant; "out": the opposite
	Unit      string   `json:"unit"`      // as declared; "1" or "" for a bare number
	Min       *float64 `json:"min,omitempty"`
	Max       *float64 `json:"max,omitempty"`
	Step      *float64 `json:"step,omitempty"`  // of a flag and of an integer bus signal: least difference of two values
	Texts     []Text   `json:"texts,omitempty"` // texts of values
	About     string   `json:"about,omitempty"`
	Port      string   `json:"port,omitempty"`    // of a bus signal: input or output of the plant that it is bound to
	Follows   string   `json:"follows,omitempty"` // unless it is set: an input "follows its own table" or "waveform" of the plant file, a signal of the bus "follows the ignition"
	Settable  bool     `json:"settable"`          // the command set takes it
	Tunable   bool     `json:"tunable"`           // a parameter that the command param takes
	Value     *float64 `json:"value,omitempty"`   // of a parameter: its present value

	value func(s *streams) float64 // value at the last tick; NaN: none. The caller holds s.mu.
}

// Text is the text of a value, such as "stuck" of the mode of a clutch.
type Text struct {
	Value float64 `json:"value"`
	Text  string  `json:"text"`
}

// Command is a command of a run.
type Command struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as people type them after lockstep ctl BENCH NAME
	About     string `json:"about"`
}

// busSignal is a signal of a message that the bench sends or receives.
type busSignal struct {
	*messages.Signal
	message *messages.Message
	bytes   int // shortest frame that holds it, bytes
	at      int // index in streams.wire
}

// health are the figures of the loop. Those of the status block are sampled when the supervisor reads
// the ring, at most recorder.DrainInterval after their tick; the times are exact.
var health = []struct {
	name, unit, about string
	value             func(s *streams) float64
}{
	{"health.wakeup_latency", "us", "wake-up latency of the tick", func(s *streams) float64 { return float64(s.lateNs) / 1e3 }},
	{"health.tick_time", "us", "time from the wake-up until the frames were out", func(s *streams) float64 { return float64(s.workNs) / 1e3 }},
	{"health.missed", "1", "ticks missed so far", func(s *streams) float64 { return float64(s.Status.Missed.Load()) }},
	{"health.late", "1", "late ticks so far", func(s *streams) float64 { return float64(s.Status.LateCount()) }},
	{"health.rx_frames", "1", "frames received so far", func(s *streams) float64 { return float64(s.Status.RxFrames.Load()) }},
	{"health.rx_rejected", "1", "frames received and not decoded so far", rejected},
	{"health.tx_frames", "1", "frames sent so far", func(s *streams) float64 { return float64(s.Status.TxFrames.Load()) }},
	{"health.tx_dropped", "1", "frames that a bus did not take so far", func(s *streams) float64 { return float64(s.Status.TxDropped.Load()) }},
	{"health.safe", "1", "1 in the safe state, else 0", func(s *streams) float64 { return float64(min(1, s.Status.SafeReason.Load())) }},
}

func rejected(s *streams) float64 {
	p := s.Status
	return float64(p.RxUnknown.Load() + p.RxShort.Load() + p.RxFormat.Load() + p.RxBad.Load() + p.RxBadSize.Load())
}

// Describe returns what a run offers.
func Describe(r report.View) (*Description, error) {
	h := r.Handover
	d := &Description{Bench: h.Bench.Name, Plant: h.Tables.Name, Period: float64(h.Tables.PeriodNs) / 1e9,
		byName: map[string]*Signal{}, messages: map[traffic.Key][]*busSignal{}}
	for _, v := range verbs {
		if v.about != "" {
			d.Commands = append(d.Commands, Command{v.name, v.arguments, v.about})
		}
	}
	for i := range h.Tables.Inputs {
		s := portSignal(&h.Tables.Inputs[i], InputKind, "in")
		unit := h.Tables.Inputs[i].DeclaredUnit()
		s.value, s.Follows = func(c *streams) float64 { return unit.FromSI(c.u[i]) }, scenario.FollowsOwn(h, i)
		if s.Follows != "" {
			s.value = func(c *streams) float64 { return unit.FromSI(c.ownInput(i)) }
		}
		_, s.Settable = scenario.StimulusUnit(h, s.Name)
		d.add(s)
	}
	for i := range h.Tables.Outputs {
		s := portSignal(&h.Tables.Outputs[i], OutputKind, "out")
		unit, form := h.Tables.Outputs[i].DeclaredUnit(), h.Tables.OutputForm(i)
		s.value = func(c *streams) float64 { return unit.FromSI(c.y[i]) }
		s.About = form.About
		for n, name := range form.Modes {
			s.Texts = append(s.Texts, Text{float64(int(kernel.Backward) + n), name})
		}
		d.add(s)
	}
	if err := d.addBuses(h); err != nil {
		return nil, err
	}
	if err := d.addParameters(h); err != nil {
		return nil, err
	}
	for _, f := range health {
		d.add(&Signal{Name: f.name, Kind: HealthKind, Direction: "out", Unit: f.unit, About: f.about, value: f.value})
	}

	return d, nil
}

// addParameters adds the parameters of the plant. One with the name of an input or output is left out.
func (d *Description) addParameters(h *bench.Handover) error {
	list, err := h.Parameters(nil)
	if err != nil {
		return err
	}
	fixed := h.FixedParameters() != nil
	for i := range list {
		s := portSignal(&list[i].Port, ParameterKind, "in")
		unit := list[i].DeclaredUnit()
		s.value, s.Tunable = func(c *streams) float64 { return unit.FromSI(c.parameters[i]) }, list[i].Tunable && !fixed
		d.add(s)
	}
	return nil
}

// now returns the description with the present values of the parameters.
func (d *Description) now(s *streams) *Description {
	copied := *d
	copied.Signals = slices.Clone(d.Signals)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range copied.Signals {
		if p.Kind == ParameterKind {
			with := *p
			with.Value, copied.Signals[i] = strictjson.Finite(p.value(s)), &with
		}
	}
	return &copied
}

// portSignal returns the signal of an input or output of the plant.
func portSignal(p *units.Port, kind Kind, direction string) *Signal {
	unit := p.DeclaredUnit()
	s := &Signal{Name: p.Name, Kind: kind, Direction: direction, Unit: unit.Spelled,
		Min: strictjson.Finite(unit.FromSI(p.Min)), Max: strictjson.Finite(unit.FromSI(p.Max))}
	if p.Flag {
		s.Step = new(1.0)
	}
	return s
}

// add adds a signal. A name that an earlier signal has is left to it.
func (d *Description) add(s *Signal) bool {
	if d.byName[s.Name] != nil {
		return false
	}
	d.Signals, d.byName[s.Name] = append(d.Signals, s), s
	return true
}

// addBuses adds the signals of all messages that the bench sends or receives.
func (d *Description) addBuses(h *bench.Handover) (err error) {
	if d.buses, err = traffic.NewBuses(h); err != nil {
		return err
	}
	for _, m := range d.buses.Messages {
		d.addMessage(h, m)
	}
	return nil
}

// addMessage adds the signals of a message.
func (d *Description) addMessage(h *bench.Handover, of *traffic.Message) {
	m, id := of.Definition, of.Key
	direction, links := "in", h.Bench.Buses[id.Bus].Receive
	if id.Sent {
		direction, links = "out", h.Bench.Buses[id.Bus].Send
	}
	for i := range m.Signals {
		sig := &m.Signals[i]
		bits, ok := sig.Bits()
		if !ok {
			continue // beyond the first 64 bytes of a long message, which the ring does not carry
		}
		w := &busSignal{Signal: sig, message: m, bytes: bits.Bytes(), at: d.bus}
		s := &Signal{Name: of.Signals[i].Signal, Kind: BusKind, Direction: direction, Unit: sig.Unit, About: sig.Comment,
			Port: sigmap.PortOf(links, m.Name, sig.Name), value: func(c *streams) float64 { return c.wire[w.at] }}
		if sig.Min < sig.Max {
			s.Min, s.Max = strictjson.Finite(sig.Min), strictjson.Finite(sig.Max)
		}
		if !sig.Float {
			s.Step = strictjson.Finite(math.Abs(sig.Factor))
		}
		for _, v := range sig.Values {
			s.Texts = append(s.Texts, Text{sig.Value(uint64(v.Raw) & (math.MaxUint64 >> (64 - sig.Len))), v.Text})
		}
		if id.Sent {
			_, s.Settable = scenario.StimulusUnit(h, s.Name)
			if n := h.Bench.Network; n != nil && n.Signal.Text == m.Name+"."+sig.Name {
				s.Follows = "follows the ignition"
			}
		}
		if d.add(s) {
			d.bus++
			d.messages[id] = append(d.messages[id], w)
		}
	}
}

// find returns the signals called names, in their order. A name may be NAME[UNIT]: the signal in that unit.
func (d *Description) find(names []string) ([]*Signal, error) {
	if len(names) == 0 || len(names) > maxSignals {
		return nil, fmt.Errorf("%d signals are named; name 1 to %d", len(names), maxSignals)
	}
	list := make([]*Signal, len(names))
	for i, name := range names {
		if list[i] = d.byName[name]; list[i] != nil {
			continue
		}
		base, unit, hasUnit := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		s := d.byName[base]
		if s == nil || !hasUnit {
			near := units.Meant(name, slices.Collect(maps.Keys(d.byName)))
			return nil, fmt.Errorf("there is no signal %.60q%s; list names all", name, near)
		}
		var err error
		if list[i], err = s.in(unit); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// in returns the signal in another unit.
func (s *Signal) in(unit string) (*Signal, error) {
	if unit == s.Unit {
		return s, nil
	}
	from := units.WantSignal(s.Unit)
	to, err := from.Spell(unit)
	if err != nil {
		return nil, fmt.Errorf("%s[%.60s]: %s", s.Name, unit, units.Reason(err))
	}
	value := func(c *streams) float64 { return to.FromSI(from.ToSI(s.value(c))) }
	return &Signal{Name: s.Name, Unit: unit, value: value}, nil
}

// text returns the text of a value; "": none.
func (s *Signal) text(v float64) string {
	for _, t := range s.Texts {
		if t.Value == v {
			return t.Text
		}
	}
	return ""
}
