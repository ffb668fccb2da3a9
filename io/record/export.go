package record

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Exporter writes what happened in the format of another program. What a format has
// no place for is left out: ticks but for MDF4 and CSV, frames for CSV, events for
// candump logs and CSV.
type Exporter interface {
	Write(e *Entry) error
	Close() error // writes what is left and the end; the file stays open
}

// Target is a file to export to, such as an *os.File. BLF and MDF4 need WriteAt, which
// a pipe refuses.
type Target interface {
	io.Writer
	io.WriterAt
}

var formats = map[string]func(Target, *Header) (Exporter, error){
	"candump": newCandump,
	"asc":     newASC,
	"blf":     newBLF,
	"mdf4":    newMDF,
	"csv":     newCSV,
}

// Formats are the names of the formats for NewExporter.
func Formats() []string { return []string{"candump", "asc", "blf", "mdf4", "csv"} }

// NewExporter starts an export into an empty file.
//
// Times count from Header.Start but in candump logs, which count from 1970 UTC. No
// time is less than the one before it: logs are read in the order of time, and where
// the record has another order by microseconds a time is raised.
func NewExporter(format string, to Target, h *Header) (Exporter, error) {
	start, ok := formats[format]
	if !ok {
		return nil, fmt.Errorf("record: there is no format %q: use one of %s", format, strings.Join(Formats(), ", "))
	}
	x, err := start(to, h)
	if err != nil {
		return nil, fmt.Errorf("record: %s: %w", format, err)
	}
	return onBus{x}, nil
}

// onBus leaves out the frames that no bus has taken, and those received that come a
// second time: it writes what was on the bus.
type onBus struct{ Exporter }

func (x onBus) Write(e *Entry) error {
	if f := &e.Frame; e.Kind == FrameEntry && (f.Lost || f.Sent && f.Withheld || !f.Sent && f.Copy) {
		return nil
	}
	return x.Exporter.Write(e)
}

// Export writes the rest of a record.
func Export(r *Reader, format string, to Target) error {
	x, err := NewExporter(format, to, &r.Header)
	if err != nil {
		return err
	}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, x.Close())
		}
		if err := x.Write(e); err != nil {
			return fmt.Errorf("record: %s: %w", format, err)
		}
	}
	if err := x.Close(); err != nil {
		return fmt.Errorf("record: %s: %w", format, err)
	}
	return nil
}

// clock gives times that never go back, ns.
type clock struct{ start, last int64 }

// since is the time since the start.
func (c *clock) since(at int64) int64 {
	c.last = max(c.last, at-c.start)
	return c.last
}

// fdLengths are the lengths of CAN FD frames by data length code: ISO 11898-1.
var fdLengths = [16]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64}

// dlc is the data length code of the smallest frame that holds n bytes, n <= 64.
func dlc(n uint8) uint8 {
	code, _ := slices.BinarySearch(fdLengths[:], n)
	return uint8(code)
}
