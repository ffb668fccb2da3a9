package bench

import (
	"fmt"
	"io"
	"math/bits"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"lockstep/io/can"
	"lockstep/io/dbc"
	"lockstep/io/sigmap"
	"lockstep/model"
	"lockstep/model/kernel"
)

// Check reads the plant, bench or database called name, a file or embedded, and
// writes what was understood.
func Check(w io.Writer, name string) error {
	file, data, err := ReadAny(name)
	switch {
	case err != nil:
		return err
	case filepath.Ext(file) == ".dbc":
		return checkDatabase(w, file, data)
	case strings.Contains("\n"+string(data), "\nbench:"):
		return checkBench(w, name)
	}
	sys, err := LoadPlant(name)
	if err != nil {
		return err
	}
	t, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: plant %s\n", file, sys.Name)
	checkPlant(w, sys, t)
	return nil
}

func checkPlant(w io.Writer, sys *model.System, t *kernel.Tables) {
	redundant := 0
	for i := range t.Modes {
		if t.Modes[i].Rank < bits.OnesCount(uint(i)) {
			redundant++
		}
	}
	inputs := make([]model.Port, len(sys.Inputs))
	for i, in := range sys.Inputs {
		inputs[i] = in.Port
	}
	line := func(head string, n int, text string) { fmt.Fprintf(w, "  %-10s%3d  %s\n", head, n, text) }
	line("states", len(sys.States), ports(sys.States))
	line("inputs", len(inputs), ports(inputs))
	line("outputs", len(sys.Outputs), ports(sys.Outputs))
	line("friction", len(t.Frictions), strings.Join(t.Frictions, ", "))
	line("modes", len(t.Modes), fmt.Sprintf("lock sets precomputed, %.2f MB; in %d of them the locks are statically indeterminate",
		float64(t.Bytes())/1e6, redundant))
	line("pieces", t.Split, fmt.Sprintf("per step of %v; the fastest mode has %.3g rad/s", time.Duration(t.PeriodNs), t.Radius))
}

// ports lists names with units and ranges.
func ports(list []model.Port) string {
	var text []string
	for _, p := range list {
		s := fmt.Sprintf("%s[%s]", p.Name, p.Unit)
		if p.Min > -1e300 || p.Max < 1e300 {
			s += fmt.Sprintf(" %g..%g", p.Min, p.Max)
		}
		text = append(text, s)
	}
	return strings.Join(text, ", ")
}

func checkDatabase(w io.Writer, file string, data []byte) error {
	db, err := dbc.Parse(file, data)
	if err != nil {
		return err
	}
	if err := db.Check(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: database\n", file)
	for _, m := range db.Messages {
		fmt.Fprintf(w, "  %s %s, %d bytes: ", identifier(m.ID), m.Name, m.Len)
		var names []string
		for _, s := range m.Signals {
			names = append(names, fmt.Sprintf("%s[%s]", s.Name, unit(s.Unit)))
		}
		fmt.Fprintln(w, strings.Join(names, ", "))
	}
	return nil
}

func checkBench(w io.Writer, name string) error {
	b, err := Load(name)
	if err != nil {
		return err
	}
	h, err := Prepare(b)
	if err != nil {
		return err
	}
	sys, err := assemble(b)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: bench %s, plant %s, a tick every %g ms, scheme %s, overrun %s\n",
		b.File, b.Name, b.Plant.Text, float64(b.PeriodNs)/1e6, b.Scheme, b.Overrun)
	checkPlant(w, sys, h.Tables)
	for i, bus := range b.Buses {
		fmt.Fprintf(w, "bus %s on %s, database %s\n", bus.Name.Text, bus.Interface.Text, bus.Database.Text)
		if err := b.checkBus(w, &bus, h.Tables, h.Maps[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkBus writes the signal map of a bus and what the bench puts on it.
func (b *Bench) checkBus(w io.Writer, bus *Bus, t *kernel.Tables, m *sigmap.Map) error {
	file, data, err := b.Read(bus.Database)
	if err != nil {
		return err
	}
	db, err := dbc.Parse(file, data)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(arrow string, l Link, ports []model.Port) {
		for _, msg := range db.Messages {
			for _, s := range msg.Signals {
				if msg.Name == l.Message && s.Name == l.Signal {
					fmt.Fprintf(table, "  %s\t%s.%s\t%d bit, %g per bit\t[%s]\t%s\t%s[%s]\n", identifier(msg.ID), msg.Name, s.Name,
						s.Len, s.Factor, unit(s.Unit), arrow, l.Port, ports[index(ports, l.Port)].Unit)
				}
			}
		}
	}
	for _, l := range bus.Receive {
		row("->", l, t.Inputs)
	}
	for _, l := range bus.Send {
		row("<-", l, t.Outputs)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return b.checkLoad(w, m)
}

// checkLoad writes what the bench puts on a bus, with the most stuff bits there
// can be: (g + 8s + 13 + (g+8s-1)/4) bits per frame of s bytes, g = 34 or 54
// (Davis et al., Real-Time Systems 35, 2007, eq. 1).
func (b *Bench) checkLoad(w io.Writer, m *sigmap.Map) error {
	const rate = 500e3 // bit/s, the usual one
	frames, bits := 0.0, 0.0
	for _, t := range m.Tx {
		perSecond := 1e9 / float64(t.CycleTicks*b.PeriodNs)
		g := 34
		if t.ID&can.EFF != 0 {
			g = 54
		}
		frames += perSecond
		bits += perSecond * float64(g+8*t.Len+13+(g+8*t.Len-1)/4)
		fmt.Fprintf(w, "  %s %s, %d bytes every %g ms, phase %g ms\n", identifier(t.ID), t.Name, t.Len,
			float64(t.CycleTicks*b.PeriodNs)/1e6, float64(t.PhaseTicks*b.PeriodNs)/1e6)
	}
	_, err := fmt.Fprintf(w, "  sent: %.0f frames/s, at most %.1f kbit/s, %.1f %% of 500 kbit/s\n", frames, bits/1e3, bits/rate*100)
	return err
}

// unit is a database's unit as the plants write it: "1" for a bare number.
func unit(s string) string {
	if s == "" {
		return "1"
	}
	return s
}

// identifier is a CAN identifier as candump prints it.
func identifier(id uint32) string {
	if id&can.EFF != 0 {
		return fmt.Sprintf("%08X", id&^can.EFF)
	}
	return fmt.Sprintf("%03X", id)
}
