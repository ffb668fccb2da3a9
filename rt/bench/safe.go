package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt"
)

// SafeState is what the buses of a bench carry when the plant may not or will not
// speak: every sent output at a declared value, in the cycles of its frames.
type SafeState struct {
	At     yamlfile.Scalar // the section in the file; "" there is none: the buses fall silent
	Values []SafeValue     // one for each output that is sent
	TimeNs int64           // for how long they are sent after an end, ns; at least the longest cycle
}

// SafeValue is one output of the plant in the safe state.
type SafeValue struct {
	Port  yamlfile.Scalar
	Value yamlfile.Scalar // a number with its unit
}

// Ends says what follows when things end. The first five tell whether the buses
// carry the safe values for a while, or fall silent at once.
type Ends struct {
	Planned    bool // the run's time is over, Ctrl-C
	Shutdown   bool // SIGTERM: the service or the host stops
	Policy     bool // missed ticks under the policy stop
	NonFinite  bool // a state of the plant is no longer a number
	TargetGone bool // the target process has died or stands still: the supervisor sends them

	Supervisor rt.Loss // the supervisor has ended
	Bus        rt.Loss // a bus is down or off
}

// orphaned is how long a target goes on without its supervisor where the bench
// does not say.
const orphaned = int64(time.Second)

func readSafeState(r *yamlfile.Reader, n ast.Node, s *SafeState) {
	for i, e := range r.Entries(n, "safe") {
		if p := e.Key.GetToken().Position; i == 0 {
			s.At = yamlfile.Scalar{Text: "safe", Line: p.Line, Col: p.Column}
		}
	}
	r.Mapping(n, "safe", []yamlfile.Key{
		{Name: "values", Read: func(n ast.Node) {
			for _, e := range r.Entries(n, "safe: values") {
				at := e.Key.GetToken().Position
				port := yamlfile.Scalar{Text: e.Key.GetToken().Value, Line: at.Line, Col: at.Column}
				s.Values = append(s.Values, SafeValue{port, r.Scalar(e.Value, "safe: "+port.Text)})
			}
		}},
		{Name: "time", Read: readNanoseconds(r, &s.TimeNs, "safe: time", 1e6, 60e9)},
	})
	if r.Err == nil && s.TimeNs == 0 {
		r.Err = r.Errorf(s.At, "safe: the time is missing for which the values are sent after an end (time: 100 ms)")
	}
}

// readEnds reads the section "end", nil where there is none; what it does not name is
// safe where there are safe values.
func readEnds(r *yamlfile.Reader, n ast.Node, b *Bench) {
	some := b.Safe.At.Text != ""
	b.End = Ends{some, some, some, some, some, rt.Loss{Action: rt.GoEnd, AfterNs: orphaned}, rt.Loss{}}
	if n == nil {
		return
	}
	safe := func(name string, dst *bool) yamlfile.Key {
		return yamlfile.Key{Name: name, Read: func(n ast.Node) {
			*dst = r.Choice(n, "end: "+name, "safe", "silence") == "safe"
			if *dst && !some {
				r.Fail(n, "end: %s: safe: there is no section safe with the values", name)
			}
		}}
	}
	e := &b.End
	r.Mapping(n, "end", []yamlfile.Key{
		safe("planned", &e.Planned), safe("shutdown", &e.Shutdown), safe("policy", &e.Policy),
		safe("non_finite", &e.NonFinite), safe("target_gone", &e.TargetGone),
		{Name: "supervisor_gone", Read: func(n ast.Node) { e.Supervisor = readLoss(r, n, "end: supervisor_gone", true) }},
		{Name: "bus_off", Read: func(n ast.Node) { e.Bus = readLoss(r, n, "end: bus_off", false) }},
	})
}

// readLoss reads "continue", "safe" or "stop", the last two with a time where later is
// set: "safe after 500 ms".
func readLoss(r *yamlfile.Reader, n ast.Node, what string, later bool) (l rt.Loss) {
	w := r.Scalar(n, what)
	action, after, timed := strings.Cut(w.Text, " after ")
	switch action {
	case "continue":
		l.Action = rt.GoOn
	case "safe":
		l.Action = rt.GoSafe
	case "stop":
		l.Action = rt.GoEnd
	default:
		l.Action = -1
	}
	seconds, err := 0.0, error(nil)
	if timed {
		seconds, err = units.Quantity(after, "s", nil)
	}
	l.AfterNs = int64(seconds * 1e9)
	if l.Action < 0 || err != nil || timed && (!later || l.Action == rt.GoOn) || !(seconds >= 0 && seconds <= 3600) {
		form := "continue, safe, stop"
		if later {
			form = "continue, safe after T, stop after T (T: 0 s to 3600 s)"
		}
		r.Fail(n, "%s: %q is none of: %s", what, w.Text, form)
	}
	return l
}

// farewell makes what the loop sends in the safe state, and after which ends.
func (b *Bench) farewell(t *kernel.Tables, maps []*sigmap.Map) (rt.Farewell, error) {
	f := rt.Farewell{Ticks: (b.Safe.TimeNs + b.PeriodNs - 1) / b.PeriodNs}
	if b.Safe.At.Text == "" {
		return rt.Farewell{}, nil
	}
	f.Values = make([]float64, len(t.Outputs))
	for _, v := range b.Safe.Values {
		i := PortIndex(t.Outputs, v.Port.Text)
		if i < 0 {
			return f, b.Errorf(v.Port, "safe: plant %s has no output %q%s", b.Plant.Text, v.Port.Text, units.Meant(v.Port.Text, PortNames(t.Outputs)))
		}
		x, err := units.Quantity(v.Value.Text, t.Outputs[i].Unit, nil)
		if err != nil {
			return f, b.Errorf(v.Value, "safe: %s: %s", v.Port.Text, QuantityError(v.Value, err))
		}
		f.Values[i] = x
	}
	for i, m := range maps {
		if err := b.checkSafe(&b.Buses[i], m, t, f.Values); err != nil {
			return f, err
		}
	}
	for reason, on := range map[rt.Reason]bool{
		rt.Done: b.End.Planned, rt.Stopped: b.End.Planned, rt.Shutdown: b.End.Shutdown,
		rt.MissedTick: b.End.Policy, rt.NonFinite: b.End.NonFinite, rt.SupervisorGone: true, rt.BusLost: true,
	} {
		if on {
			f.On |= 1 << reason
		}
	}
	return f, nil
}

// checkSafe sees to it that each output that bus sends has a safe value that its
// signal can carry, for as long as its frame's cycle.
func (b *Bench) checkSafe(bus *Bus, m *sigmap.Map, t *kernel.Tables, values []float64) error {
	for i := range m.Tx {
		tx := &m.Tx[i]
		if !slices.ContainsFunc(tx.Fields, func(f sigmap.Field) bool { return f.Course == 0 }) {
			continue // nothing in it is the plant's
		}
		if cycle := tx.CycleTicks * b.PeriodNs; cycle > b.Safe.TimeNs {
			return b.Errorf(b.Safe.At, "safe: the time, %v, is shorter than the cycle of frame %s, %v",
				time.Duration(b.Safe.TimeNs), tx.Name, time.Duration(cycle))
		}
		for j := range tx.Fields {
			f := &tx.Fields[j]
			if f.Course > 0 {
				continue
			}
			name := t.Outputs[f.Index].Name
			at := slices.IndexFunc(b.Safe.Values, func(v SafeValue) bool { return v.Port.Text == name })
			if at < 0 {
				return b.Errorf(b.Safe.At, "safe: no value for %s, which bus %s sends in frame %s (%s: %s)",
					name, bus.Name.Text, tx.Name, name, WithUnit("0", t.Outputs[f.Index].Unit))
			}
			if raw := (values[f.Index] - f.Offset) / f.Factor; !(raw >= f.Lo-0.5 && raw <= f.Hi+0.5) {
				return b.Errorf(b.Safe.Values[at].Value, "safe: %s: %s is beyond what its signal in frame %s can carry",
					name, b.Safe.Values[at].Value.Text, tx.Name)
			}
		}
	}
	return nil
}

// EndsText says in words what follows at each end, in lines.
func (b *Bench) EndsText() string {
	words := map[bool]string{true: "safe", false: "silence"}
	e := &b.End
	text := fmt.Sprintf("planned %s, shutdown %s, policy %s, non_finite %s, target_gone %s,\nsupervisor_gone %s, bus_off %s",
		words[e.Planned], words[e.Shutdown], words[e.Policy], words[e.NonFinite], words[e.TargetGone], lossText(e.Supervisor), lossText(e.Bus))
	if b.Safe.At.Text == "" {
		return text + "\nno safe values: the safe state is silence"
	}
	return text + fmt.Sprintf("\nsafe values for %v after an end", time.Duration(b.Safe.TimeNs))
}

// lossText is a loss as a bench file writes it.
func lossText(l rt.Loss) string {
	text := map[rt.Action]string{rt.GoOn: "continue", rt.GoSafe: "safe", rt.GoEnd: "stop"}[l.Action]
	if l.AfterNs > 0 {
		text += fmt.Sprintf(" after %v", time.Duration(l.AfterNs))
	}
	return text
}
