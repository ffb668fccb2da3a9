package check

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt/bench"
)

// usualRate is the bit rate where a bench gives none, bit/s.
const usualRate = 500e3

// busRates says the bit rates that the file gives.
func busRates(bus *bench.Bus) string {
	text := ""
	if bus.BitRate > 0 {
		text = fmt.Sprintf(", %g kbit/s", bus.BitRate/1e3)
	}
	if bus.DataRate > 0 {
		text += fmt.Sprintf(", CAN FD data at %g kbit/s", bus.DataRate/1e3)
	}
	if bus.RestartNs > 0 {
		text += fmt.Sprintf(", restarted %v after bus-off", time.Duration(bus.RestartNs))
	}
	return text
}

// interfaceTable writes the messages of a bus with what they are to the bench.
type interfaceTable struct {
	b   *bench.Bench
	bus *bench.Bus
	db  *messages.Database
	t   *kernel.Tables
	out *tabwriter.Writer
}

// checkBus writes the complete interface of a bus, and what the bench puts on it.
func (c *Check) checkBus(b *bench.Bench, bus *bench.Bus, t *kernel.Tables, m *sigmap.Map) error {
	w := c.Out
	db, err := b.Database(bus)
	if err != nil {
		return err
	}
	for i := range m.Rx {
		v := &interfaceTable{b, bus, db, t, tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
		fmt.Fprintf(w, "  %s %s received, %s\n", identifier(m.Rx[i].ID), m.Rx[i].Name, v.aboutReceived(&m.Rx[i]))
		v.received(&m.Rx[i])
		err = errors.Join(err, v.out.Flush())
	}
	for i := range m.Tx {
		v := &interfaceTable{b, bus, db, t, tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
		fmt.Fprintf(w, "  %s %s, %s\n", identifier(m.Tx[i].ID), m.Tx[i].Name, v.aboutSent(&m.Tx[i], &bus.Frames[i]))
		v.sent(&m.Tx[i], &bus.Frames[i])
		err = errors.Join(err, v.out.Flush())
	}
	return errors.Join(err, c.load(b, bus, m))
}

// message is what the database says of a message.
func (v *interfaceTable) message(name string) *messages.Message {
	i := slices.IndexFunc(v.db.Messages, func(m messages.Message) bool { return m.Name == name })
	return &v.db.Messages[i]
}

func (v *interfaceTable) ms(ticks int64) string {
	return fmt.Sprintf("%g ms", float64(ticks*v.b.PeriodNs)/1e6)
}

func (v *interfaceTable) aboutReceived(rx *sigmap.Rx) string {
	text := fmt.Sprintf("%d bytes", rx.Len)
	if !rx.Exact {
		text += " or more"
	}
	if rx.CycleTicks > 0 {
		text += " every " + v.ms(rx.CycleTicks)
	}
	if rx.TimeoutTicks > 0 {
		first := ""
		if rx.FirstTicks != rx.TimeoutTicks {
			first = fmt.Sprintf(" (at first %s)", v.ms(rx.FirstTicks))
		}
		text += fmt.Sprintf(", late after %s%s: %s", v.ms(rx.TimeoutTicks), first, v.reaction(&rx.OnTimeout))
	}
	for i := range rx.Protect {
		text += ", protected by " + rx.Protect[i].Profile
	}
	if len(rx.Protect) > 0 {
		text += ", while INVALID: " + v.reaction(&rx.OnError)
	}
	return text
}

func (v *interfaceTable) reaction(r *sigmap.Reaction) string {
	if r.Action != sigmap.Substitute {
		return r.Action.String()
	}
	var list []string
	for _, s := range r.Values {
		p := &v.t.Inputs[s.Index]
		list = append(list, p.Name+" is "+bench.WithUnit(fmt.Sprintf("%g", s.Value), p.Unit))
	}
	return strings.Join(list, ", ")
}

func (v *interfaceTable) aboutSent(tx *sigmap.Tx, f *bench.Frame) string {
	text := fmt.Sprintf("%d bytes", tx.Len)
	if tx.Flags&can.FlagFDF != 0 {
		text += " of CAN FD"
	}
	if tx.Flags&can.FlagBRS != 0 {
		text += " with BRS"
	}
	if tx.Send != sigmap.OnChange {
		text += fmt.Sprintf(" every %s, phase %s", v.ms(tx.CycleTicks), v.ms(tx.PhaseTicks))
		if f.PhaseNs == sigmap.FreePhase && tx.CycleTicks > 1 {
			text += " (chosen)"
		}
	}
	if tx.Send != sigmap.Cyclic {
		text += fmt.Sprintf(", on change, at most every %s", v.ms(tx.GapTicks))
		if tx.Repeats > 0 {
			text += fmt.Sprintf(", and %d times more every %s", tx.Repeats, v.ms(tx.EveryTicks))
		}
	}
	for i := range tx.Protect {
		text += ", protected by " + tx.Protect[i].Profile
	}
	if f.Rest {
		text += ", restbus"
	}
	return text
}

// row writes one signal, and what it is to the bench.
func (v *interfaceTable) row(msg *messages.Message, s *messages.Signal, what string) {
	cells := signalRow(s)
	limits := cells[3]
	if limits == "" {
		limits = "-"
	}
	fmt.Fprintf(v.out, "    %s.%s\t%s\t%s\t%s\t[%s]\t%s\n", msg.Name, s.Name, cells[1], cells[2], limits, bench.UnitOrOne(s.Unit),
		strings.TrimSpace(what+" "+cells[5]))
}

func (v *interfaceTable) received(rx *sigmap.Rx) {
	msg := v.message(rx.Name)
	for i := range msg.Signals {
		s := &msg.Signals[i]
		what := bench.ProtectedPart(s, rx.Protect, "not used")
		for _, l := range v.bus.Receive {
			if l.Message == msg.Name && l.Signal == s.Name {
				what = fmt.Sprintf("-> %s", port(v.t.Inputs, l.Port))
			}
		}
		v.row(msg, s, what)
	}
}

func (v *interfaceTable) sent(tx *sigmap.Tx, f *bench.Frame) {
	msg := v.message(tx.Name)
	for i := range msg.Signals {
		s := &msg.Signals[i]
		what := "not sent:" // the row says when it would be
		if msg.Present(s, &tx.Base) {
			what = bench.ProtectedPart(s, tx.Protect, v.source(msg, s, f))
		}
		v.row(msg, s, what)
	}
}

// source says where the value of a sent signal comes from.
func (v *interfaceTable) source(msg *messages.Message, s *messages.Signal, f *bench.Frame) string {
	for _, l := range v.bus.Send {
		if l.Message == msg.Name && l.Signal == s.Name {
			return "<- " + port(v.t.Outputs, l.Port)
		}
	}
	for _, c := range f.Values {
		if c.Signal.Text == s.Name {
			if c.Course != nil {
				return "<- a course over time"
			}
			return "= " + c.Text
		}
	}
	switch {
	case f.Counter.Text == s.Name:
		return "counts the frames"
	case s.HasInitial:
		return fmt.Sprintf("= raw %g, its start value", s.Initial)
	case msg.J1939:
		return "= not available"
	case s.Offset != 0:
		return fmt.Sprintf("= raw 0, which is %g", s.Offset)
	}
	return "= 0"
}

// port is a port with its unit, and its range if it has one.
func port(list []units.Port, name string) string {
	p := &list[bench.PortIndex(list, name)]
	text := fmt.Sprintf("%s[%s]", p.Name, p.Unit)
	if !math.IsInf(p.Min, 0) || !math.IsInf(p.Max, 0) {
		text += fmt.Sprintf(" %g to %g", p.Min, p.Max)
	}
	switch p.Beyond {
	case units.Wraps:
		text += ", counts on from the other end of its range"
	case units.Rests:
		text += ", stays at the end of its range"
	}
	return text
}

// load writes what the bench puts on a bus at most, and warns where that is too much.
func (c *Check) load(b *bench.Bench, bus *bench.Bus, m *sigmap.Map) error {
	rate := bus.BitRate
	if rate == 0 {
		rate = usualRate
	}
	data := bus.DataRate
	if data == 0 {
		data = rate
	}
	var frames, bits, share, changes float64
	for i := range m.Tx {
		t := &m.Tx[i]
		seconds := float64(t.Bits()) / rate
		if slow, fast := t.BitsFD(); t.Flags&can.FlagBRS != 0 {
			seconds = float64(slow)/rate + float64(fast)/data
		}
		if t.Send != sigmap.OnChange {
			perSecond := 1e9 / float64(t.CycleTicks*b.PeriodNs)
			frames += perSecond
			bits += perSecond * float64(t.Bits())
			share += perSecond * seconds
		}
		if t.Send != sigmap.Cyclic {
			changes += 1e9 / float64(t.GapTicks*b.PeriodNs) * seconds
		}
	}
	text := ""
	if changes > 0 {
		text = fmt.Sprintf("; with a change whenever one may be sent %.1f %% more", changes*100)
	}
	if bus.DataRate > 0 {
		text += fmt.Sprintf("; data of CAN FD at %g kbit/s", data/1e3)
	}
	if share > 1 {
		c.warn("%s:%d:%d: bus %q: what the bench sends is up to %.1f %% of %g kbit/s: frames will be dropped",
			b.File, bus.Name.Line, bus.Name.Col, bus.Name.Text, share*100, rate/1e3)
	}
	_, err := fmt.Fprintf(c.Out, "  sent: %.0f frames/s, at most %.1f kbit/s, %.1f %% of %g kbit/s%s\n", frames, bits/1e3, share*100, rate/1e3, text)
	return err
}
