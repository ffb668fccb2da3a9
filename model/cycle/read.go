package cycle

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"time"

	"lockstep/io/csvfile"
	"lockstep/io/inputfile"
	"lockstep/model/units"
)

// Limits of a cycle from a file.
const (
	shortestStep = int64(10 * time.Millisecond) // between two rows; bounds the points that a band covers
	mostRows     = 1 << 16                      // the limit of a waveform
	longestFile  = 24 * time.Hour
	highestSpeed = 150 // m/s
)

// open reads a CSV file as a cycle.
func open(name string) (*Cycle, error) {
	f, err := inputfile.Open(name, inputfile.Inputs)
	if err != nil {
		return nil, fmt.Errorf("cycle: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	c, err := Read(name, io.TeeReader(f, sum))
	if err == nil {
		c.Digest = sum.Sum(nil)
	}
	return c, err
}

// Read reads a cycle of one phase in CSV: the columns time[s] and v, in a unit of speed, as v[km/h].
// The first row is at 0 s; the speed is linear between rows. The tolerance is that of WLTP. Errors are
// "FILE:LINE:COL: cycle: ...".
func Read(name string, from io.Reader) (*Cycle, error) {
	c := &Cycle{Name: name, Title: "cycle from a file", Source: name, Band: wltp}
	var second units.Wanted
	columns := 0
	err := csvfile.Read(name, from, "cycle",
		func(i int, head csvfile.Column) (err error) {
			columns++
			switch {
			case i == 0:
				second, err = head.Time()
				return err
			case i > 1 || head.Name != "v":
				return fmt.Errorf("expected the columns time[s] and v[km/h], got %q", head.Name)
			case head.Unit == "":
				return head.WithoutUnit("km/h")
			}
			if c.Unit, err = units.Want("m/s").Spell(head.Unit); err != nil {
				return fmt.Errorf("column v: %s", units.Reason(err))
			}
			return nil
		},
		func(i int, v float64, text string) error {
			if i == 0 {
				return c.addTime(second.ToSI(v), text)
			}
			if v = c.Unit.ToSI(v); !(math.Abs(v) <= highestSpeed) {
				return fmt.Errorf("%s is outside the range of a speed, %s",
					units.WithUnit(text, c.Unit.Spelled), c.Unit.FormatRange(-highestSpeed, highestSpeed))
			}
			c.Target.Value = append(c.Target.Value, v)
			return nil
		})
	switch n := len(c.Target.At); {
	case err != nil:
		return nil, err
	case columns < 2:
		return nil, fmt.Errorf("%s: cycle: the column v is missing: the header is time[s],v[km/h]", name)
	case n < 2:
		return nil, fmt.Errorf("%s: cycle: the file has one row: a cycle has at least two", name)
	}
	c.Phases = []Phase{{Name: "whole", End: c.Target.At[len(c.Target.At)-1]}}
	return c, nil
}

// addTime begins a row at a time, s.
func (c *Cycle) addTime(t float64, text string) error {
	n := len(c.Target.At)
	if !(t >= 0 && t <= longestFile.Seconds()) {
		return fmt.Errorf("%s is not between 0 and %v s", text, longestFile.Seconds())
	}
	at := int64(math.Round(t * 1e9))
	switch {
	case n == 0 && at != 0:
		return fmt.Errorf("the first row is at %s s: a cycle begins at 0 s", text)
	case n == mostRows:
		return fmt.Errorf("the file has more than %d rows: leave out rows between which the speed is linear", mostRows)
	case n > 0 && at-c.Target.At[n-1] < shortestStep:
		return fmt.Errorf("%s s is less than 10 ms after the row before it", text)
	}
	c.Target.At = append(c.Target.At, at)
	return nil
}
