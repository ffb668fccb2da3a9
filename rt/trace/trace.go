// Package trace owns the signals of a finished run over time: it reads them from a record, a CSV file or
// the MDF4 of an export, draws them, and compares two runs. It does not repeat a run: package virtual replays records.
//
// Reading order: trace.go (Trace, Open), chart.go (diagrams), blocks.go (diagrams of a terminal),
// diff.go (comparison).
package trace

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"lockstep/io/csvfile"
	"lockstep/io/framelog"
	"lockstep/io/inputfile"
	"lockstep/io/record"
	"lockstep/model/units"
	"lockstep/rt/bench"
)

// Trace holds signals over time.
type Trace struct {
	File    string
	Time    []float64 // s, increasing
	Signals []Signal
	Gaps    *record.GapError // what a damaged record lacks; nil: nothing

	period int64 // of the grid of a record, ns
}

// Signal is a signal of a trace. Values holds one value per time, in Unit.
type Signal struct {
	Name   string
	Unit   units.Wanted
	Values []float64
}

// maxValues is how many values Open takes from a record, 1 GiB: a record has no bound.
var maxValues = 1 << 27

// Open reads the signals whose names match one of the patterns, see path.Match, in their order; all
// signals of the plant if there is no pattern. Of a record it reads the ticks in the times of v only. A pattern that matches no signal is an error.
func Open(command, file string, v View, patterns ...string) (*Trace, error) {
	if err := bench.CheckFile(command, file, "record", "inputs", "MDF"); err != nil {
		return nil, err
	}
	head, err := inputfile.ReadHead(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	if v.From > v.To {
		return nil, fmt.Errorf("%s: -to %g s is before -from %g s", command, v.To, v.From)
	}
	t := &Trace{File: file}
	switch {
	case record.IsRecord(head):
		err = t.readRecord(v, patterns)
	case bytes.HasPrefix(head, []byte(framelog.MDFMagic)), bytes.HasPrefix(head, []byte(framelog.MDFUnfinished)):
		err = t.readMDF(patterns)
	default:
		err = t.readCSV(command, patterns)
	}
	return t, err
}

// IsRecord reports whether Open has read the trace from a record.
func (t *Trace) IsRecord() bool { return t.period > 0 }

// Converted returns the signal with its values in another unit.
func (s *Signal) Converted(unit string) (Signal, error) {
	if unit == s.Unit.Spelled {
		return *s, nil
	}
	other, err := s.Unit.Spell(unit)
	if err != nil {
		return *s, err
	}
	converted := Signal{Name: s.Name, Unit: other}
	for _, v := range s.Values {
		converted.Values = append(converted.Values, other.FromSI(s.Unit.ToSI(v)))
	}
	return converted, nil
}

// choose returns the columns to read: the index of each name that matches a pattern.
func choose(file string, names, patterns []string) (columns []int, err error) {
	if len(patterns) == 0 {
		for i := range names {
			columns = append(columns, i)
		}
		return columns, nil
	}
	for _, pattern := range patterns {
		found := false
		for i, name := range names {
			match, err := path.Match(pattern, name)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", pattern, err)
			}
			if !match && name != pattern {
				continue
			}
			if found = true; !slices.Contains(columns, i) {
				columns = append(columns, i)
			}
		}
		if !found {
			return nil, fmt.Errorf("%s has no signal %q%s; it has %s", file, pattern, units.Meant(pattern, names), strings.Join(names, ", "))
		}
	}
	return columns, nil
}

// readRecord reads inputs and outputs of the plant.
func (t *Trace) readRecord(v View, patterns []string) error {
	r, err := record.Open(t.File)
	if err != nil {
		return err
	}
	defer r.Close()
	all := slices.Concat(r.Header.Inputs, r.Header.Outputs)
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	columns, err := choose(t.File, names, patterns)
	if err != nil {
		return err
	}
	for _, c := range columns {
		t.Signals = append(t.Signals, Signal{Name: names[c], Unit: all[c].Wanted()})
	}
	t.period = r.Header.Period
	r.Progress = v.Progress

	c := &collector{Trace: t, view: v, columns: columns, inputs: len(r.Header.Inputs), first: math.NaN()}
	err = record.Walk(r, c, false)
	if errors.As(err, &t.Gaps) {
		err = nil
	}
	switch {
	case err != nil || len(t.Time) > 0:
	case math.IsNaN(c.first):
		err = fmt.Errorf("%s holds no tick", t.File)
	default:
		err = outside(t.File, c.first, c.last)
	}
	return err
}

// outside is the error of a view without a time of a trace.
func outside(file string, first, last float64) error {
	return fmt.Errorf("%s lasts from %g s to %g s, and has no time between -from and -to", file, first, last)
}

// collector appends the ticks of a record to a trace.
type collector struct {
	*Trace
	view        View
	columns     []int // of the inputs, then of the outputs
	inputs      int
	first, last float64 // times of all ticks, s; NaN: there is none
}

// Write implements record.Exporter.
func (c *collector) Write(e *record.Entry) error {
	if e.Kind != record.TickEntry {
		return nil
	}
	c.last = float64(e.Tick.Index*c.period) / 1e9
	if math.IsNaN(c.first) {
		c.first = c.last
	}
	if c.last < c.view.From || c.last > c.view.To {
		return nil
	}
	if len(c.Time)*len(c.columns) >= maxValues {
		return fmt.Errorf("%s has more than %d values of %d signals up to %g s: take a shorter part with -from and -to", c.File, maxValues, len(c.columns), c.last)
	}
	c.Time = append(c.Time, c.last)
	for i, column := range c.columns {
		values, k := e.Tick.U, column
		if column >= c.inputs {
			values, k = e.Tick.Y, column-c.inputs
		}
		s := &c.Signals[i]
		s.Values = append(s.Values, s.Unit.FromSI(values[k]))
	}
	return nil
}

// Close implements record.Exporter.
func (c *collector) Close() error { return nil }

// readMDF reads the inputs and outputs of the plant in a file of export.
func (t *Trace) readMDF(patterns []string) error {
	f, err := inputfile.Open(t.File, inputfile.Log)
	if err != nil {
		return err
	}
	defer f.Close()
	choose := func(list []framelog.MDFColumn) ([]int, error) {
		n := len(list) // the flags and phases of the tick are behind the signals of the plant
		for n > 0 && strings.HasPrefix(list[n-1].Name, "phase ") {
			n--
		}
		if n > 0 && list[n-1].Name == "flags" {
			n--
		}
		var names []string
		for _, c := range list[:n] {
			names = append(names, c.Name)
		}
		columns, err := choose(t.File, names, patterns)
		for _, c := range columns {
			t.Signals = append(t.Signals, Signal{Name: names[c], Unit: units.WantSignal(list[c].Unit)})
		}
		return columns, err
	}
	err = framelog.ReadMDFValues(t.File, f, record.TickGroup, choose, func(at float64, values []float64) error {
		if len(t.Time) > 0 && !(at > t.Time[len(t.Time)-1]) || math.IsInf(at, 0) || math.IsNaN(at) {
			return fmt.Errorf("the time %g s is not after the one before it", at)
		}
		t.Time = append(t.Time, at)
		for i, v := range values {
			t.Signals[i].Values = append(t.Signals[i].Values, v)
		}
		return nil
	})
	if err == nil && len(t.Time) == 0 {
		err = fmt.Errorf("%s holds no tick", t.File)
	}
	return err
}

// plantColumns returns the number of columns before those of the tick, which export writes last: its flags and the
// times of its phases. They are properties of the host, and differ in every run.
func plantColumns(columns []Signal) int {
	i := slices.IndexFunc(columns, func(s Signal) bool { return s.Name == "flags" })
	if i < 0 || slices.ContainsFunc(columns[i+1:], func(s Signal) bool { return s.Unit.Spelled != "ns" }) {
		return len(columns)
	}
	return i
}

// readCSV reads a file of sim, of export or of another program. It reads a column whose unit is not known
// as numbers without a unit. command begins its errors.
func (t *Trace) readCSV(command string, patterns []string) error {
	f, err := inputfile.Open(t.File, inputfile.Inputs)
	if err != nil {
		return err
	}
	defer f.Close()
	var names []string
	var all []Signal
	var place []int // of each column in Signals; -1: not read
	var wrong error // pattern
	column := func(i int, head csvfile.Column) (err error) {
		all = append(all, Signal{Name: head.Name, Unit: units.WantSignal(head.Unit)})
		if names = append(names, head.Name); i == 0 {
			all[0].Unit, err = head.Time()
		}
		return err
	}
	value := func(i int, v float64, text string) error {
		if place == nil {
			var columns []int
			known := names[1:]
			if len(patterns) == 0 {
				known = known[:plantColumns(all[1:])]
			}
			if columns, wrong = choose(t.File, known, patterns); wrong != nil {
				return wrong
			}
			place = slices.Repeat([]int{-1}, len(all))
			for k, c := range columns {
				place[1+c] = k
				t.Signals = append(t.Signals, all[1+c])
			}
		}
		if i > 0 {
			if k := place[i]; k >= 0 {
				t.Signals[k].Values = append(t.Signals[k].Values, v)
			}
			return nil
		}
		if v = all[0].Unit.ToSI(v); len(t.Time) > 0 && !(v > t.Time[len(t.Time)-1]) || math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("%s is not after the row before it", text)
		}
		t.Time = append(t.Time, v)
		return nil
	}
	if err := csvfile.Read(t.File, f, command, column, value); wrong == nil {
		return err
	}
	return wrong
}
