package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"lockstep/io/can"
	"lockstep/io/dbc"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/units"
	"lockstep/rt/bench"
)

// database writes the messages and signals of a database.
func (c *Check) database(file string, data []byte) error {
	db, err := c.readDatabase(file, data)
	if err != nil {
		return err
	}
	c.warnUnbindable(db)
	signals := 0
	for i := range db.Messages {
		signals += len(db.Messages[i].Signals)
	}
	fmt.Fprintf(c.Out, "%s: database, %d messages, %d signals\n", file, len(db.Messages), signals)
	for i := range db.Messages {
		m := &db.Messages[i]
		fmt.Fprintf(c.Out, "%s %s, %s\n", can.FormatID(m.ID), m.Name, strings.Join(aboutMessage(m), ", "))
		if err := signalTable(c.Out, m); err != nil {
			return err
		}
	}

	return nil
}

// warnDeviations warns of deviations in the database of a bus.
func (c *Check) warnDeviations(b *bench.Bench, bus *bench.Bus) error {
	file, data, err := b.Read(bus.Database, "database")
	if err == nil {
		_, err = c.readDatabase(file, data)
	}
	return err
}

// readDatabase reads a database and warns of every line that deviates from the format; with
// Strict it refuses such a database.
func (c *Check) readDatabase(file string, data []byte) (*messages.Database, error) {
	if c.Strict {
		return dbc.Parse(file, data)
	}
	db, list, err := dbc.ParseLenient(file, data)
	for _, l := range list {
		at := fmt.Sprintf("%s:%d:%d", file, l.Line, l.Col)
		if l.Col == 0 {
			at = fmt.Sprintf("%s:%d", file, l.Line)
		}
		c.warn("%s: %s", at, l.Text)
	}

	return db, err
}

// warnUnbindable warns of what a bench can bind only with an entry of its own, of a multiplexor that
// selects nothing, and of messages that are CAN FD by their length.
func (c *Check) warnUnbindable(db *messages.Database) {
	named := map[string]bool{} // units
	for i := range db.Messages {
		m := &db.Messages[i]
		if m.LongFD {
			c.warn("%s:%d: message %q: %d bytes, and no VFrameFormat of CAN FD: taken as CAN FD", db.File, m.Line, m.Name, m.Len)
		}
		for j := range m.Signals {
			s := &m.Signals[j]
			if err := sigmap.CheckSignal(db, m, s); err != nil {
				c.warn("%s:%d: message %q: signal %q: a bench cannot bind it: %v", db.File, s.Line, m.Name, s.Name, err)
			}
			if s.Multiplexor && !m.Selects(s) {
				c.warn("%s:%d: message %q: signal %q: a multiplexor (M) that selects no signal: taken as a plain signal",
					db.File, s.Line, m.Name, s.Name)
			}
			if _, err := units.ParseWanted(s.Unit); err != nil && !named[s.Unit] {
				named[s.Unit] = true
				c.warn("%s:%d: message %q: signal %q: a bench that converts %q needs its meaning: units: {%q: KNOWN}",
					db.File, s.Line, m.Name, s.Name, s.Unit, s.Unit)
			}
		}
	}
}

// aboutMessage returns the properties of a message for its line.
func aboutMessage(m *messages.Message) []string {
	list := []string{fmt.Sprintf("%d bytes", m.Len)}
	switch {
	case m.LongFD:
		list = append(list, "CAN FD by its length")
	case m.BRS:
		list = append(list, "CAN FD with BRS")
	case m.FD:
		list = append(list, "CAN FD")
	case m.J1939:
		list = append(list, "J1939")
	}

	if m.Sender != "" {
		list = append(list, "from "+strings.Join(append([]string{m.Sender}, m.OtherSenders...), " or "))
	}
	if m.CycleNs > 0 {
		list = append(list, fmt.Sprintf("every %g ms", float64(m.CycleNs)/1e6))
	}
	if m.SendType != "" {
		list = append(list, m.SendType)
	}
	return list
}

// signalTable writes the signals of a message in the notation of a DBC, without empty columns.
func signalTable(w io.Writer, m *messages.Message) error {
	var rows [][]string
	for i := range m.Signals {
		rows = append(rows, signalRow(&m.Signals[i]))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		line := "  "
		for i, cell := range row {
			if slices.ContainsFunc(rows, func(r []string) bool { return r[i] != "" }) {
				line += cell + "\t"
			}
		}

		fmt.Fprintln(table, strings.TrimRight(line, "\t "))
	}

	return table.Flush()
}

// signalRow returns the row of a signal in signalTable.
func signalRow(s *messages.Signal) []string {
	order, sign, limits := "1", "+", ""
	if s.BigEndian {
		order = "0"
	}
	switch {
	case s.Float:
		sign = " float"
	case s.Signed:
		sign = "-"
	}

	if s.Min < s.Max {
		limits = fmt.Sprintf("[%g|%g]", s.Min, s.Max)
	}
	texts, start, spn, to := "", "", "", ""
	if len(s.Values) > 0 {
		texts = fmt.Sprintf("%d texts", len(s.Values))
	}
	if s.HasInitial {
		start = "start " + s.FormatInitial()
	}
	if s.SPN > 0 {
		spn = fmt.Sprintf("SPN %d", s.SPN)
	}
	if len(s.Receivers) > 0 {
		to = "to " + strings.Join(s.Receivers, ", ")
	}
	return []string{
		s.Name, fmt.Sprintf("%d|%d@%s%s", s.Start, s.Len, order, sign),
		fmt.Sprintf("(%g,%g)", s.Factor, s.Offset), limits, s.Unit, muxText(s), texts, start, spn, to,
	}
}

// muxText describes the multiplexing of a signal.
func muxText(s *messages.Signal) string {
	text := ""
	if s.MuxedBy != "" {
		text = "if " + s.MuxedBy + "="
		for i, r := range s.Ranges {
			if i > 0 {
				text += ","
			}
			if text += fmt.Sprint(r[0]); r[1] > r[0] {
				text += fmt.Sprintf("-%d", r[1])
			}
		}
	}

	if s.Multiplexor {
		text = strings.TrimSpace("multiplexor " + text)
	}
	return text
}
