package virtual

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/inputfile"
	"lockstep/io/yamlfile"
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
	text := bufio.NewReader(inputfile.LimitLines(from, maxRow))
	if begin, err := text.Peek(len(bench.ByteOrderMark)); err == nil && string(begin) == bench.ByteOrderMark {
		_, _ = text.Discard(len(bench.ByteOrderMark))
	}
	fail := func(line, col int, err error) (*stimulus, error) {
		return nil, &yamlfile.FileError{File: file, Line: line, Col: col, Owner: "bench", Err: err}
	}
	head, _ := text.Peek(longestHead)
	if len(head) > 0 {
		if _, err := bench.CheckKind("sim -in", file, head, "inputs"); err != nil {
			return nil, err
		}
	}
	if line, col, mark := otherSeparator(head); mark != "" {
		return fail(line, col, fmt.Errorf("the columns are separated by %s: separate them by ',', "+
			"and write decimals with a point", mark))
	}
	c := csv.NewReader(text)
	c.Comment, c.TrimLeadingSpace, c.ReuseRecord = '#', true, true
	s := &stimulus{}
	var columns []column
	for {
		row, err := c.Read()
		var bad *csv.ParseError
		switch {
		case errors.Is(err, csv.ErrFieldCount) && errors.As(err, &bad):
			return fail(bad.Line, 1, fmt.Errorf("row of %d fields, the header has %d; decimals follow a point",
				len(row), len(columns)))
		case errors.As(err, &bad):
			return fail(bad.Line, bad.Column, bad.Err)
		case errors.Is(err, io.EOF) && columns == nil:
			return fail(1, 1, errors.New("the file is empty"))
		case errors.Is(err, io.EOF) && len(s.Ns) == 0:
			return fail(2, 1, errors.New("the file has a header and no row"))
		case errors.Is(err, io.EOF):
			return s, nil
		case err != nil:
			return nil, fmt.Errorf("bench: %s: %w", file, err)
		}

		header := len(columns) < len(row)
		for i, text := range row {
			text = strings.TrimSpace(text)
			if header {
				var next column
				next, err = s.column(i, text, inputs)
				columns = append(columns, next)
			} else if err = s.value(columns[i], text); err != nil {
				err = fmt.Errorf("column %s: %w", columns[i].name, err)
			}

			if err != nil {
				line, col := c.FieldPos(i)
				return fail(line, col, err)
			}
		}
	}
}

// maxRow is the longest row of a file of inputs, bytes.
const maxRow = 1 << 20

// longestHead is the longest header that is examined, with the comments above it, bytes.
const longestHead = 4 << 10

// otherSeparator returns the position and the name of the separator in the header of a file, if it is
// not a comma; "" if it is, or if there is one column.
func otherSeparator(head []byte) (line, col int, mark string) {
	for header := range strings.Lines(string(head)) {
		line++
		if header = strings.TrimRight(header, "\r\n"); header == "" || header[0] == '#' {
			continue
		}
		col = strings.IndexAny(header, ";\t|")
		if col < 0 || strings.Contains(header, ",") {
			return 0, 0, ""
		}
		return line, col + 1, map[byte]string{';': "';'", '\t': "tabs", '|': "'|'"}[header[col]]
	}
	return 0, 0, ""
}

// column is one column of a file of inputs.
type column struct {
	name     string
	unit     units.Wanted
	time     bool    // the column of times
	min, max float64 // range of the input, SI
}

// column parses a field of the header and binds it to an input.
func (s *stimulus) column(i int, head string, inputs []units.Port) (c column, err error) {
	name, unit, ok := strings.Cut(strings.TrimSuffix(head, "]"), "[")
	if !ok {
		want := "s"
		if k := bench.PortIndex(inputs, head); i > 0 && k >= 0 {
			want = inputs[k].DeclaredUnit().Spelled
		}
		return c, fmt.Errorf("column %q has no unit: write %s[%s]", head, head, want)
	}
	c.name = name
	if i == 0 {
		if name != "time" {
			return c, fmt.Errorf("expected time[s] as the first column, got %q", head)
		}
		c.time = true
		c.unit, err = units.Want("s").Spell(unit)
		return c, err
	}

	k := bench.PortIndex(inputs, name)
	if k < 0 {
		names := bench.PortNames(inputs)
		return c, fmt.Errorf("the plant has no input %q%s; it has %s",
			name, units.Meant(name, names), strings.Join(names, ", "))
	}

	if slices.Contains(s.Port, k) {
		return c, fmt.Errorf("input %q appears twice", name)
	}
	s.Port = append(s.Port, k)
	c.min, c.max = inputs[k].Accepted()
	if c.unit, err = inputs[k].DeclaredUnit().Spell(unit); err != nil {
		err = fmt.Errorf("input %q: %s", name, units.Reason(err))
	}
	return c, err
}

// value parses and appends a field of a row.
func (s *stimulus) value(c column, text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		if _, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64); err == nil {
			return fmt.Errorf("%q is not a number; decimals follow a point: %s", text, strings.Replace(text, ",", ".", 1))
		}
		return fmt.Errorf("%q is not a number", text)
	}
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
