package check

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"lockstep/io/can"
	"lockstep/io/j1939"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/io/wire"
	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt/bench"
)

// usualRate is the bit rate assumed for a bench without one, bit/s.
const usualRate = 500e3

// busRates describes the bit rates that the file gives.
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

// interfaceTable writes the messages of a bus and their use in the bench.
type interfaceTable struct {
	b   *bench.Bench
	bus *bench.Bus
	db  *messages.Database
	t   *kernel.Tables
	out *tabwriter.Writer
}

// checkBus writes the complete interface of a bus, and the bus load of the bench.
func (c *Check) checkBus(h *bench.Handover, bus int) error {
	db, err := h.Database(bus)
	if err != nil {
		return err
	}
	m := h.Maps[bus]
	v := &interfaceTable{h.Bench, &h.Bench.Buses[bus], db, h.Tables, tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)}
	for i := range m.Rx {
		rx := &m.Rx[i]
		fmt.Fprintf(c.Out, "  %s %s received, %s\n", can.FormatID(rx.ID), rx.Name, v.aboutReceived(rx))
		err = errors.Join(err, v.rows(rx.Name, func(msg *messages.Message, s *messages.Signal) string {
			if at := sigmap.PortOf(v.bus.Receive, msg.Name, s.Name); at != "" {
				return "-> " + port(v.t.Inputs, at) + rampText(h, at)
			}
			return bench.ProtectionOf(s, rx.Protect, "not used")
		}))
	}

	for i := range m.Tx {
		tx, f := &m.Tx[i], &v.bus.Frames[i]
		fmt.Fprintf(c.Out, "  %s %s, %s\n", can.FormatID(tx.ID), tx.Name, v.aboutSent(tx, f))
		err = errors.Join(err, v.rows(tx.Name, func(msg *messages.Message, s *messages.Signal) string {
			if !isSent(msg, s, tx) {
				return "not sent:" // the row shows the mux values
			}
			return bench.ProtectionOf(s, tx.Protect, v.sourceOf(msg, s, f))
		}))
	}

	return errors.Join(err, c.load(v.b, v.bus, m))
}

// rampText describes the ramp of an input; "" if it has none.
func rampText(h *bench.Handover, input string) string {
	i, ramps := bench.PortIndex(h.Tables.Inputs, input), h.Loop.Inputs.RampNs
	if ramps == nil || ramps[i] == 0 {
		return ""
	}
	return fmt.Sprintf(", a ramp of %v", time.Duration(ramps[i]))
}

// isSent reports whether the frame, or one of its pages, has a signal.
func isSent(msg *messages.Message, s *messages.Signal, tx *sigmap.Tx) bool {
	if tx.Excerpt.Rest != nil {
		return msg.PresentIn(s, tx.Excerpt.Whole(tx.Base[:tx.Len]))
	}
	return msg.Present(s, &tx.Base) || slices.ContainsFunc(tx.Pages, func(data [64]byte) bool { return msg.Present(s, &data) })
}

// rows writes the signals of a message; what describes the use of each in the bench.
func (v *interfaceTable) rows(name string, what func(*messages.Message, *messages.Signal) string) error {
	i := slices.IndexFunc(v.db.Messages, func(m messages.Message) bool { return m.Name == name })
	msg := &v.db.Messages[i]
	for i := range msg.Signals {
		s := &msg.Signals[i]
		cells := signalRow(s)
		fmt.Fprintf(v.out, "    %s.%s\t%s\t%s\t%s\t[%s]\t%s\n", msg.Name, s.Name, cells[1], cells[2],
			cmp.Or(cells[3], "-"), cmp.Or(s.Unit, "1"), strings.TrimSpace(what(msg, s)+" "+cells[5]))
	}

	return v.out.Flush()
}

// isJ1939 reports whether a message is one of J1939.
func (v *interfaceTable) isJ1939(name string) bool {
	return slices.ContainsFunc(v.db.Messages, func(m messages.Message) bool { return m.Name == name && m.J1939 })
}

func (v *interfaceTable) ms(ticks int64) string {
	return fmt.Sprintf("%g ms", float64(ticks*v.b.PeriodNs)/1e6)
}

func (v *interfaceTable) aboutReceived(rx *sigmap.Rx) string {
	text := fmt.Sprintf("%d bytes", rx.Excerpt.Size(rx.Len))
	if !rx.Exact {
		text += " or more"
	}
	if rx.FD && !v.bus.ByWire {
		text += " in CAN FD frames"
	}
	if rx.BRS {
		text += " with BRS"
	}
	if rx.Long {
		text += " in several frames"
	}
	if v.isJ1939(rx.Name) && j1939.ParseID(rx.ID).Source == j1939.Null {
		text += ", from any address"
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
		if profile := rx.Protect[i].Profile; profile != "" { // else the window alone
			text += ", protected by " + profile
		}
	}
	if len(rx.Protect) > 0 {
		text += ", while INVALID: " + v.reaction(&rx.OnError)
	}
	if rx.Whole {
		text += ", rejected if a signal is out of range"
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
		list = append(list, p.Name+" is "+p.DeclaredUnit().Format(s.Value))
	}

	return strings.Join(list, ", ")
}

func (v *interfaceTable) aboutSent(tx *sigmap.Tx, f *bench.Frame) string {
	text := fmt.Sprintf("%d bytes", tx.Excerpt.Size(tx.Len))
	if v.bus.ByWire {
		return text
	}
	if tx.Flags&can.FlagFDF != 0 {
		text += " of CAN FD"
	}
	if slices.ContainsFunc(v.db.Messages, func(m messages.Message) bool { return m.Name == tx.Name && m.LongFD }) {
		text += " (by its length)"
	}
	if tx.Flags&can.FlagLong != 0 {
		text += " in several frames"
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

	if n := len(tx.Pages); n > 0 {
		text += fmt.Sprintf(", %d pages in turn, each every %s", n, v.ms(tx.CycleTicks*int64(n)))
	}
	for i := range tx.Protect {
		text += ", protected by " + tx.Protect[i].Profile
	}
	if f.Restbus {
		text += ", restbus"
	}
	if v.b.Network != nil {
		text += ", in " + cmp.Or(f.StatesOf(), "the network management")
		if f.DelayNs > 0 {
			text += fmt.Sprintf(", %v after the switch-on", time.Duration(f.DelayNs))
		}
	}
	return text
}

// sourceOf describes the source of a sent signal's value.
func (v *interfaceTable) sourceOf(msg *messages.Message, s *messages.Signal, f *bench.Frame) string {
	if at := sigmap.PortOf(v.bus.Send, msg.Name, s.Name); at != "" {
		return "<- " + port(v.t.Outputs, at)
	}
	for _, c := range f.Values {
		if c.Signal == s.Name {
			if c.Waveform != nil {
				return "<- a waveform"
			}
			return "= " + c.Text
		}
	}

	switch {
	case f.Mux != nil && msg.Selects(s):
		return "= the page"
	case f.Counter == s.Name:
		return "counts the frames"
	case s.HasInitial:
		return fmt.Sprintf("= raw %s, its start value", s.FormatInitial())
	case msg.J1939:
		return "= not available"
	case s.Offset != 0:
		return fmt.Sprintf("= raw 0, which is %g", s.Offset)
	}

	return "= 0"
}

// port formats a port with its unit, and its range if it has one.
func port(list []units.Port, name string) string {
	p := &list[bench.PortIndex(list, name)]
	unit := p.DeclaredUnit()
	text := fmt.Sprintf("%s[%s]", p.Name, unit.Spelled)
	if !math.IsInf(p.Min, 0) || !math.IsInf(p.Max, 0) {
		text += fmt.Sprintf(" %.9g to %.9g", unit.FromSI(p.Min), unit.FromSI(p.Max))
	}
	switch p.Beyond {
	case units.Wraps:
		text += ", wraps at the end of its range"
	case units.Rests:
		text += ", stays at the end of its range"
	}

	return text
}

// load writes the largest bus load of the bench, and warns if it exceeds the bit rate.
func (c *Check) load(b *bench.Bench, bus *bench.Bus, m *sigmap.Map) error {
	if bus.ByWire {
		_, err := fmt.Fprintf(c.Out, "  sent: one image of %d bytes per tick, %.4g images/s\n", wire.Size, 1e9/float64(b.PeriodNs))
		return err
	}
	rate := cmp.Or(bus.BitRate, usualRate)
	data := cmp.Or(bus.DataRate, rate)
	var frames, bits, share, changes float64
	for i := range m.Tx {
		t := &m.Tx[i]
		seconds := float64(t.MaxBits()) / rate
		if slow, fast := t.MaxBitsFD(); t.Flags&can.FlagBRS != 0 {
			seconds = float64(slow)/rate + float64(fast)/data
		}
		if t.Send != sigmap.OnChange {
			perSecond := 1e9 / float64(t.CycleTicks*b.PeriodNs)
			frames += perSecond * float64(t.BusFrames())
			bits += perSecond * float64(t.MaxBits())
			share += perSecond * seconds
		}

		if t.Send != sigmap.Cyclic {
			changes += 1e9 / float64(t.GapTicks*b.PeriodNs) * seconds
		}
	}

	text := ""
	if changes > 0 {
		text = fmt.Sprintf("; frames sent on change add up to %.1f %%", changes*100)
	}
	if bus.DataRate > 0 {
		text += fmt.Sprintf("; data of CAN FD at %g kbit/s", data/1e3)
	}
	if share > 1 {
		c.warn("%s:%d:%d: bus %q: the bench sends up to %.1f %% of %g kbit/s: frames will be dropped",
			b.File, bus.Name.Line, bus.Name.Col, bus.Name.Text, share*100, rate/1e3)
	}

	_, err := fmt.Fprintf(c.Out, "  sent: %.0f frames/s, at most %.1f kbit/s, %.1f %% of %g kbit/s%s\n",
		frames, bits/1e3, share*100, rate/1e3, text)
	return err
}
