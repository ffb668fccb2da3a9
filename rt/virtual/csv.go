package virtual

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/csvfile"
	"lockstep/io/inputfile"
	"lockstep/model/kernel"
	"lockstep/model/plants"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// stimulus is a file of inputs: values over time for some inputs of a plant.
//
// A row holds from its time until the next row. The step that ends at grid point k uses the last
// row whose time is not after grid point k-1. Before the first row, an input has the value of its
// own waveform at time 0.
type stimulus struct {
	Port  []int     // index in the plant's inputs, per column
	Ns    []int64   // times of the rows, ns, increasing
	Value []float64 // rows × len(Port), SI
}

// readStimulus reads a CSV file, or the embedded file of that name. The first column is time[s],
// the others are name[unit] of inputs. Values are converted to SI. Errors are "FILE:LINE:COL: ...".
func readStimulus(name string, inputs []units.Port) (*stimulus, error) {
	f, err := inputfile.Open(name, inputfile.Inputs)
	if err == nil {
		if err := bench.CheckFile("sim -in", name, "inputs"); err != nil {
			f.Close()
			return nil, err
		}
		defer f.Close()
		return parseStimulus(name, f, inputs)
	}

	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bench: inputs: %w", err)
	}
	embedded := strings.TrimSuffix(name, ".csv") + ".csv"
	if data, err := plants.Read(embedded); err == nil {
		return parseStimulus(embedded, bytes.NewReader(data), inputs)
	}
	if err := bench.CheckFile("sim -in", name, "inputs"); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("bench: inputs: %w%s", err, units.Meant(name, plants.Names()))
}

func parseStimulus(file string, from io.Reader, inputs []units.Port) (*stimulus, error) {
	s := &stimulus{}
	var columns []column
	err := csvfile.Read(file, from, "bench",
		func(i int, head csvfile.Column) error {
			next, err := s.column(i, head, inputs)
			columns = append(columns, next)
			return err
		},
		func(i int, v float64, text string) error { return s.value(columns[i], v, text) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// column is one column of a file of inputs.
type column struct {
	name     string
	unit     units.Wanted
	time     bool    // the column of times
	min, max float64 // range of the input, SI
}

// column binds a field of the header to an input.
func (s *stimulus) column(i int, head csvfile.Column, inputs []units.Port) (c column, err error) {
	c.name = head.Name
	k := bench.PortIndex(inputs, head.Name)
	if head.Unit == "" {
		want := "s"
		if i > 0 && k >= 0 {
			want = inputs[k].DeclaredUnit().Spelled
		}
		return c, head.WithoutUnit(want)
	}
	if i == 0 {
		c.time = true
		c.unit, err = head.Time()
		return c, err
	}
	if k < 0 {
		names := bench.PortNames(inputs)
		return c, fmt.Errorf("the plant has no input %q%s; it has %s",
			c.name, units.Meant(c.name, names), strings.Join(names, ", "))
	}

	if slices.Contains(s.Port, k) {
		return c, fmt.Errorf("input %q appears twice", c.name)
	}
	s.Port = append(s.Port, k)
	c.min, c.max = inputs[k].Accepted()
	if c.unit, err = inputs[k].DeclaredUnit().Spell(head.Unit); err != nil {
		err = fmt.Errorf("input %q: %s", c.name, units.Reason(err))
	}
	return c, err
}

// value appends a field of a row.
func (s *stimulus) value(c column, v float64, text string) error {
	v = c.unit.ToSI(v)
	if c.time {
		return s.row(v, text)
	}
	if !(v >= c.min && v <= c.max) || math.IsInf(v, 0) {
		return fmt.Errorf("%s is outside the range of the input, %s",
			units.WithUnit(text, c.unit.Spelled), c.unit.FormatRange(c.min, c.max))
	}

	s.Value = append(s.Value, v)
	return nil
}

// row begins a row at time v, s.
func (s *stimulus) row(v float64, text string) error {
	if !(v >= 0 && v < 1e9) {
		return fmt.Errorf("%s is not between 0 and 1e9 s", text)
	}
	ns := int64(math.Round(v * 1e9))
	if n := len(s.Ns); n > 0 && ns <= s.Ns[n-1] {
		return fmt.Errorf("%s is not after the row before it", text)
	}
	s.Ns = append(s.Ns, ns)
	return nil
}

// apply writes the values at time ns into u. row is the row of the previous call, -1 at first;
// apply returns the row for the next call. A nil stimulus has no rows.
func (s *stimulus) apply(u []float64, ns int64, row int) int {
	if s == nil {
		return row
	}
	for row+1 < len(s.Ns) && s.Ns[row+1] <= ns {
		row++
	}
	if row >= 0 {
		for i, k := range s.Port {
			u[k] = s.Value[row*len(s.Port)+i]
		}
	}

	return row
}

// csvTable writes a CSV file of numbers and words that need no quotes. close returns the first
// error.
type csvTable struct {
	w     *bufio.Writer
	file  *host.Result
	field []byte
	begun bool
}

// newTable creates a file and writes its header. Name "-" is the standard output, "" no file.
func newTable(name string, head []string) (*csvTable, error) {
	if name == "" {
		return nil, nil
	}
	f, err := bench.CreateResult(name, 0, "inputs")
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}

	t := &csvTable{w: bufio.NewWriterSize(f, 1<<16), file: f, field: make([]byte, 0, 256)} // longer than any field
	for _, h := range head {
		t.text(h)
	}
	t.end()
	return t, nil
}

// portTable is a CSV file of the time and all ports of a plant.
type portTable struct {
	*csvTable
	shown []units.Wanted // of the outputs, then of the inputs
}

// newPortTable creates a table with the ports in their declared units, or in SI.
func newPortTable(name string, tables *kernel.Tables, si bool) (t portTable, err error) {
	head := []string{"time[s]"}
	for _, p := range slices.Concat(tables.Outputs, tables.Inputs) {
		if si {
			p.Declared = ""
		}
		unit := p.DeclaredUnit()
		t.shown = append(t.shown, unit)
		head = append(head, p.Name+"["+unit.Spelled+"]")
	}
	t.csvTable, err = newTable(name, head)
	return t, err
}

// row writes a row of the time, s, and of the SI values of outputs and inputs.
func (t *portTable) row(at float64, y, u []float64) {
	t.number(at)
	for i, v := range y {
		t.number(t.shown[i].FromSI(v))
	}
	for i, v := range u {
		t.number(t.shown[len(y)+i].FromSI(v))
	}
	t.end()
}

func (t *csvTable) number(v float64) { t.put(strconv.AppendFloat(t.field[:0], v, 'g', -1, 64)) }
func (t *csvTable) text(s string)    { t.put(append(t.field[:0], s...)) }

func (t *csvTable) put(field []byte) {
	t.field = field
	if t.begun {
		t.w.WriteByte(',')
	}
	t.begun = true
	t.w.Write(field)
}

func (t *csvTable) end() {
	t.begun = false
	t.w.WriteByte('\n')
}

// close completes the file; a nil table has none.
func (t *csvTable) close() error {
	if t == nil {
		return nil
	}
	if err := t.w.Flush(); err != nil {
		return err
	}
	return t.file.Commit()
}

// discard removes a file that close has not completed.
func (t *csvTable) discard() {
	if t != nil {
		t.file.Close()
	}
}
