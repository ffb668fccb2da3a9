package record

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/model/units"
)

// Exporter writes entries in the format of another program. Only MDF4 and CSV contain
// ticks; CSV contains no frames; candump logs and CSV contain no events.
//
// A gap of the record is a comment in ASC, a global marker in BLF and an event in MDF4. In MDF4 and
// CSV the first tick after missing ticks has the flag AfterGap. A candump log cannot mark a gap.
type Exporter interface {
	Write(e *Entry) error
	Close() error // writes the remaining data and the end; the file stays open
}

// Target is a file to export to, such as an *os.File. BLF and MDF4 need WriteAt, which a
// pipe does not have.
type Target interface {
	io.Writer
	io.WriterAt
}

var formats = []struct {
	name  string
	start func(Target, *Header) (Exporter, error)
}{
	{"candump", newCandump},
	{"asc", newASC},
	{"blf", newBLF},
	{"mdf4", newMDF},
	{"csv", newCSV},
}

// Formats returns the names of the formats for NewExporter.
func Formats() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// NewExporter starts an export into an empty file.
//
// Values of ticks are in the declared units of their signals; see Header.DropDeclaredUnits.
//
// Times count from Header.Start, in candump logs from 1970 UTC. Times never decrease,
// because readers expect logs in the order of time: where entries of the record are out of
// order by microseconds, the later entry gets the time of the one before.
func NewExporter(format string, to Target, h *Header) (Exporter, error) {
	i := slices.Index(Formats(), format)
	if i < 0 {
		return nil, fmt.Errorf("record: unknown format %q; use one of %s", format, strings.Join(Formats(), ", "))
	}
	shown := *h
	c := unitConverter{}
	shown.Inputs = c.addSignals(h.Inputs)
	shown.Outputs = c.addSignals(h.Outputs)
	x, err := formats[i].start(to, &shown)
	if err != nil {
		return nil, fmt.Errorf("record: %s: %w", format, err)
	}
	c.Exporter, c.values = busFrames{x}, make([]float64, len(c.wanted))
	return &c, nil
}

// unitConverter converts the values of ticks to the declared units of their signals.
type unitConverter struct {
	Exporter
	wanted []units.Wanted // of the inputs, then of the outputs
	values []float64
}

// addSignals appends the units of signals and returns the signals with these units.
func (c *unitConverter) addSignals(list []Signal) []Signal {
	shown := slices.Clone(list)
	for i := range shown {
		w := shown[i].Wanted()
		c.wanted = append(c.wanted, w)
		shown[i].Unit = w.Spelled
	}
	return shown
}

func (c *unitConverter) Write(e *Entry) error {
	if e.Kind != TickEntry {
		return c.Exporter.Write(e)
	}
	m := len(e.Tick.U)
	copy(c.values, e.Tick.U)
	copy(c.values[m:], e.Tick.Y)
	for i := range c.values {
		c.values[i] = c.wanted[i].FromSI(c.values[i])
	}
	shown := Entry{Kind: TickEntry, Tick: e.Tick}
	shown.Tick.U, shown.Tick.Y = c.values[:m], c.values[m:]
	return c.Exporter.Write(&shown)
}

// busFrames writes the frames that were on the bus: it leaves out frames that no bus
// accepted, copies of received frames, which a fault passes to the plant, and messages of several frames.
// MDF4 has the signals of those messages.
type busFrames struct{ Exporter }

func (x busFrames) Write(e *Entry) error {
	_, signals := x.Exporter.(*mdfExporter)
	if f := &e.Frame; e.Kind == FrameEntry && (f.Lost || f.Sent && f.Withheld || !f.Sent && f.Copy ||
		f.Flags&can.FlagLong != 0 && !signals) {
		return nil
	}
	return x.Exporter.Write(e)
}

// lineExporter exports entries as lines of text.
type lineExporter struct {
	h      *Header
	out    *bufio.Writer
	clock  clock
	line   []byte
	format func(b []byte, e *Entry) []byte // function that appends the line of an entry, if any
	end    string                          // last line
}

func (x *lineExporter) Write(e *Entry) error {
	x.line = x.format(x.line[:0], e)
	_, err := x.out.Write(x.line)
	return err
}

func (x *lineExporter) Close() error {
	_, err := x.out.WriteString(x.end)
	return errors.Join(err, x.out.Flush())
}

// clock returns times that never decrease, ns.
type clock struct{ start, last int64 }

// elapsed returns the time since the start, ns.
func (c *clock) elapsed(at int64) int64 {
	c.last = max(c.last, at-c.start)
	return c.last
}

// csvExporter writes the ticks as CSV: time[s], inputs, outputs, flags, and phases in ns.
// Numbers have the fewest digits that read back to the same value.
type csvExporter struct {
	h    *Header
	out  *csv.Writer
	row  []string
	text []byte
}

func newCSV(to Target, h *Header) (Exporter, error) {
	x := &csvExporter{h: h, out: csv.NewWriter(to)}
	x.row = append(x.row, "time[s]")
	for _, s := range slices.Concat(h.Inputs, h.Outputs) {
		x.row = append(x.row, s.Name+"["+s.Unit+"]")
	}
	x.row = append(x.row, "flags[1]")
	for _, name := range h.Phases {
		x.row = append(x.row, name+"[ns]")
	}
	return x, x.out.Write(x.row)
}

func (x *csvExporter) Write(e *Entry) error {
	if e.Kind != TickEntry {
		return nil
	}
	t := &e.Tick
	x.row = append(x.row[:0], strconv.FormatFloat(float64(t.Index*x.h.Period)/1e9, 'g', -1, 64))
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

func (x *csvExporter) Close() error {
	x.out.Flush()
	return x.out.Error()
}
