package record

import (
	"encoding/csv"
	"strconv"
)

// table writes the ticks as CSV: time[s], every input and output, flags, and the
// phases in ns. Numbers are the shortest that read back to the same value.
type table struct {
	h    *Header
	out  *csv.Writer
	row  []string
	text []byte
}

func newCSV(to Target, h *Header) (Exporter, error) {
	x := &table{h: h, out: csv.NewWriter(to)}
	x.row = append(x.row, "time[s]")
	for _, s := range h.Inputs {
		x.row = append(x.row, s.Name+"["+s.Unit+"]")
	}
	for _, s := range h.Outputs {
		x.row = append(x.row, s.Name+"["+s.Unit+"]")
	}
	x.row = append(x.row, "flags[1]")
	for _, name := range h.Phases {
		x.row = append(x.row, name+"[ns]")
	}
	return x, x.out.Write(x.row)
}

func (x *table) Write(e *Entry) error {
	if e.Kind != TickEntry {
		return nil
	}
	t := &e.Tick
	x.row = append(x.row[:0], seconds(t.Index*x.h.Period))
	for _, values := range [...][]float64{t.U, t.Y} {
		for _, v := range values {
			x.text = strconv.AppendFloat(x.text[:0], v, 'g', -1, 64)
			x.row = append(x.row, string(x.text))
		}
	}
	x.row = append(x.row, strconv.Itoa(int(t.Flags)))
	for _, ns := range t.Phases {
		x.row = append(x.row, strconv.FormatInt(ns, 10))
	}
	return x.out.Write(x.row)
}

// seconds is a time in seconds without a rounding error.
func seconds(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'g', -1, 64) }

func (x *table) Close() error {
	x.out.Flush()
	return x.out.Error()
}
