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
	"lockstep/rt/bench"
)

// database writes the messages and signals of a database.
func (c *Check) database(file string, data []byte) error {
	db, err := c.readDatabase(file, data)
	if err != nil {
		return err
	}
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

// aboutMessage returns the properties of a message for its line.
func aboutMessage(m *messages.Message) []string {
	list := []string{fmt.Sprintf("%d bytes", m.Len)}
	switch {
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
		start = fmt.Sprintf("start %g", s.Initial)
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
