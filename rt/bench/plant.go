package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/io/dbc"
	"lockstep/io/messages"
	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/network"
	"lockstep/model/plantfile"
	"lockstep/model/units"
)

// Unit gives the meaning of a unit's spelling in a database, or the unit of a signal whose
// unit in the database is missing or wrong.
type Unit struct {
	Of yamlfile.Scalar // unit as spelled in the database, or MESSAGE.SIGNAL, which takes precedence
	Is string          // known unit, such as "km/h"
}

// Range replaces the range of a signal in the database.
type Range struct {
	Of     yamlfile.Scalar // MESSAGE.SIGNAL
	Limits []string        // lowest and highest value as quantities; or allBits
}

// allBits in a Range stands for all values that the bits of the signal hold.
const allBits = "all"

// applyRanges replaces the ranges of signals in a database by those of the bench file.
func (b *Bench) applyRanges(bus *Bus, db *messages.Database) error {
	for _, v := range bus.Ranges {
		var s *messages.Signal
		var known []string
		for i := range db.Messages {
			m := &db.Messages[i]
			for j := range m.Signals {
				name := m.Name + "." + m.Signals[j].Name
				if known = append(known, name); name == v.Of.Text {
					s = &m.Signals[j]
				}
			}
		}

		if s == nil {
			return b.Errorf(v.Of, "bus %q: ranges: %s has no signal %q%s",
				bus.Name.Text, db.File, v.Of.Text, units.Meant(v.Of.Text, known))
		}
		s.Min, s.Max = 0, 0
		if len(v.Limits) == 1 {
			continue // all bits
		}

		unit := units.WantSignal(s.Unit)
		for i, to := range []*float64{&s.Min, &s.Max} {
			si, err := unit.Typed(v.Limits[i])
			if err != nil {
				return b.Errorf(v.Of, "bus %q: ranges: %s: %s", bus.Name.Text, v.Of.Text, QuantityError(v.Limits[i], err))
			}
			*to = unit.FromSI(si)
		}
		if !(s.Min < s.Max) {
			return b.Errorf(v.Of, "bus %q: ranges: %s: %s is not below %s", bus.Name.Text, v.Of.Text, v.Limits[0], v.Limits[1])
		}
	}

	return nil
}

// Database reads the database of a bus leniently (check lists the deviations) and applies the
// units and ranges of the bench file to its signals.
func (b *Bench) Database(bus *Bus) (*messages.Database, error) {
	file, data, err := b.Read(bus.Database, "database")
	if err != nil {
		return nil, err
	}
	db, list, err := dbc.ParseLenient(file, data)
	if err != nil {
		return nil, err
	}
	bus.deviations = len(list)
	known := replaceUnits(db, bus.UnitsInPlace())
	for _, u := range bus.Units {
		if !slices.Contains(known, u.Of.Text) {
			return nil, b.Errorf(u.Of, "bus %q: units: %s has no unit and no signal MESSAGE.SIGNAL %q%s",
				bus.Name.Text, file, u.Of.Text, units.Meant(u.Of.Text, known))
		}
	}

	for i := range db.Messages {
		if m := &db.Messages[i]; m.NoFormat && bus.FD {
			m.FD, m.LongFD = true, false
		}
	}
	bus.limitMissing(db)
	return db, b.applyRanges(bus, db)
}

// UnitsInPlace returns the units that are in place of those of the database, nil if there are none.
func (bus *Bus) UnitsInPlace() map[string]string {
	if len(bus.Units) == 0 {
		return nil
	}
	is := map[string]string{}
	for _, u := range bus.Units {
		is[u.Of.Text] = u.Is
	}
	return is
}

// replaceUnits replaces the units of signals, by the unit of the database or by MESSAGE.SIGNAL, which has
// precedence. It returns all keys that are possible.
func replaceUnits(db *messages.Database, is map[string]string) (known []string) {
	for i := range db.Messages {
		m := &db.Messages[i]
		for j := range m.Signals {
			s := &m.Signals[j]
			for _, key := range []string{s.Unit, m.Name + "." + s.Name} {
				known = append(known, key)
				if unit, ok := is[key]; ok {
					s.Unit = unit
				}
			}
		}
	}
	return known
}

// readNanoseconds reads a time from lo to hi, a whole number of ns.
func readNanoseconds(r *yamlfile.Reader, f yamlfile.Field, what string, lo, hi float64) int64 {
	w := r.Scalar(f, what)
	s := ReadQuantity(r, f, w.Text, units.Want("s"), what)
	ns := math.RoundToEven(s * 1e9)
	switch {
	case !(ns >= lo && ns <= hi):
		r.Fail(f, "%s: %q is not between %v and %v", what, w.Text, time.Duration(lo), time.Duration(hi))
	case !(math.Abs(s*1e9-ns) < 1e-3):
		r.Fail(f, "%s: %q is not a whole number of nanoseconds", what, w.Text)
	}

	return int64(ns)
}

// QuantityError returns an error of package units with the text of the quantity exactly once.
func QuantityError(text string, err error) string {
	if errors.As(err, new(*units.MissingUnit)) {
		return units.Reason(err)
	}
	text = fmt.Sprintf("%q: ", text)
	return text + strings.TrimPrefix(units.Reason(err), text)
}

// DescribeSource describes the waveform of an input that nothing drives.
func DescribeSource(s *model.Source, unit units.Wanted) string {
	switch {
	case len(s.Sum) > 0 || s.Amplitude != 0 || s.Period > 0:
		return "follows its own waveform"
	case len(s.T) > 1:
		return "follows its own table"
	}

	return "stays at " + unit.Format(kernel.SourceAt(s, 0))
}

// Database returns the database of a bus and reads it on the first call.
func (h *Handover) Database(bus int) (*messages.Database, error) {
	if h.databases == nil {
		h.databases = make([]*messages.Database, len(h.Bench.Buses))
	}
	if h.databases[bus] == nil {
		db, err := h.Bench.Database(&h.Bench.Buses[bus])
		if err != nil {
			return nil, err
		}
		h.databases[bus] = db
	}

	return h.databases[bus], nil
}

// LoadPlant reads and assembles a plant: the file called name if it exists, else the embedded
// plant. set replaces values of its parameters, and start chooses start presets. command names the caller
// in errors.
func LoadPlant(command, name string, set, start []plantfile.Assignment) (*model.System, error) {
	file, data, _, err := ReadKind(command, name, "plant")
	if err != nil {
		return nil, err
	}
	plant, err := ReadPlant(file, data, set, start)
	if err != nil {
		return nil, err
	}
	return assemble.System(plant)
}

// ReadPlant reads a plant file with values that replace those of its parameters, and with start presets.
func ReadPlant(file string, data []byte, set, start []plantfile.Assignment) (*network.Plant, error) {
	draft, err := plantfile.Parse(file, data, library.Elements())
	if err != nil {
		return nil, err
	}
	draft.Assign(set)
	draft.Start(start)
	return draft.Load()
}

// WithFile prefixes an error of the kernel with the file of the plant, unless the error names
// a location itself.
func WithFile(file string, err error) error {
	if at := new(kernel.PlaceError); errors.As(err, &at) {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// mostLength bounds a simulation, s, so that its length fits nanoseconds.
const mostLength = 1e9

// OwnLength returns the length of a simulation from the plant's own tables: the time of their
// last row, plus 10 s if the value still changes there, as in a step; 10 s without tables.
func OwnLength(sys *model.System, driven []bool, step time.Duration) time.Duration {
	last, changes := 0.0, false
	for j := range sys.Signals {
		i := slices.IndexFunc(sys.Inputs, func(in model.Input) bool { return in.Signal == j })
		delay := 0.0
		if i >= 0 {
			if driven != nil && driven[i] {
				continue
			}
			delay = sys.Inputs[i].Delay
		}

		for _, s := range sys.Signals[j].Source.Leaves() {
			n := len(s.T)
			if n < 2 || s.Period > 0 || s.T[n-1]+delay < last {
				continue
			}
			changed := s.V[n-1] != s.V[n-2]
			changes = changed || changes && s.T[n-1]+delay == last
			last = s.T[n-1] + delay
		}
	}

	if changes || last == 0 {
		last += 10
	}
	return max(step, time.Duration(math.Round(min(last, mostLength)*1e9)))
}
