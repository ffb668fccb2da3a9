package bench

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"lockstep/io/dbc"
	"lockstep/io/messages"
	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/units"
)

// Unit says what a unit of a database means, which may spell it in its own way, or
// which one a signal has that says none or a wrong one.
type Unit struct {
	Of yamlfile.Scalar // a unit as it is in the database, or MESSAGE.SIGNAL, which goes before
	Is string          // such as "km/h"
}

func readUnits(r *yamlfile.Reader, n ast.Node, dst *[]Unit, what string) {
	for _, e := range r.Entries(n, what) {
		u := Unit{yamlfile.KeyScalar(e), r.Scalar(e.Value, what+": "+yamlfile.KeyScalar(e).Text).Text}
		if _, err := units.Parse(u.Is); err != nil && r.Err == nil {
			r.Fail(e.Value, "%s: %s", what, strings.TrimPrefix(err.Error(), "model: "))
		}
		*dst = append(*dst, u)
	}
}

// Database reads the database of a bus, leniently (check says where), and gives its
// signals the units that the bench says they have.
func (b *Bench) Database(bus *Bus) (*messages.Database, error) {
	file, data, err := b.Read(bus.Database)
	if err != nil {
		return nil, err
	}
	db, list, err := dbc.ParseLenient(file, data)
	if err != nil {
		return nil, err
	}
	bus.lenient = len(list)
	ofUnit, signals := map[string][]*messages.Signal{}, map[string]*messages.Signal{}
	var known []string
	for i := range db.Messages {
		m := &db.Messages[i]
		for j := range m.Signals {
			s := &m.Signals[j]
			if ofUnit[s.Unit] == nil {
				known = append(known, s.Unit)
			}
			ofUnit[s.Unit], signals[m.Name+"."+s.Name] = append(ofUnit[s.Unit], s), s
			known = append(known, m.Name+"."+s.Name)
		}
	}
	for _, u := range bus.Units {
		for _, s := range ofUnit[u.Of.Text] {
			s.Unit = u.Is
		}
	}
	for _, u := range bus.Units {
		if s := signals[u.Of.Text]; s != nil {
			s.Unit = u.Is
		} else if ofUnit[u.Of.Text] == nil {
			return nil, b.Errorf(u.Of, "bus %q: units: %s has no unit and no signal MESSAGE.SIGNAL %q%s",
				bus.Name.Text, file, u.Of.Text, units.Meant(u.Of.Text, known))
		}
	}
	return db, nil
}

// readNanoseconds reads a time from lo to hi ns that is a whole number of them.
func readNanoseconds(r *yamlfile.Reader, dst *int64, what string, lo, hi float64) func(ast.Node) {
	return func(n ast.Node) {
		w := r.Scalar(n, what)
		if r.Err != nil {
			return
		}
		s, err := units.Quantity(w.Text, "s", nil)
		ns := math.RoundToEven(s * 1e9)
		switch {
		case err != nil:
			r.Fail(n, "%s: %s", what, QuantityError(w, err))
		case !(ns >= lo && ns <= hi):
			r.Fail(n, "%s: %q is not between %v and %v", what, w.Text, time.Duration(lo), time.Duration(hi))
		case !(math.Abs(s*1e9-ns) < 1e-3):
			r.Fail(n, "%s: %q is not a whole number of nanoseconds", what, w.Text)
		}
		*dst = int64(ns)
	}
}

// QuantityError is the error of package model about a quantity, with the text of the quantity once.
func QuantityError(w yamlfile.Scalar, err error) string {
	text := fmt.Sprintf("%q: ", w.Text)
	return text + strings.TrimPrefix(strings.TrimPrefix(err.Error(), "model: "), text)
}

// DescribeSource says what an input that nobody drives does.
func DescribeSource(s *model.Source, unit string) string {
	switch {
	case len(s.Sum) > 0 || s.Amplitude != 0 || s.Period > 0:
		return "follows its own course"
	case len(s.T) > 1:
		return "follows its own table"
	}
	return "stays at " + WithUnit(fmt.Sprintf("%.6g", kernel.SourceAt(s, 0)), unit)
}

// UnitOrOne is a database's unit as the plants write it: "1" for a bare number.
func UnitOrOne(s string) string {
	if s == "" {
		return "1"
	}
	return s
}

// Database is the database of a bus; it is read once.
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

// WithUnit is the text of a number with its unit; one without a dimension stands alone.
func WithUnit(number, unit string) string {
	if unit == "" || unit == "1" {
		return number
	}
	return number + " " + unit
}
