package bench

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
	"lockstep/io/dbc"
	"lockstep/io/sigmap"
	"lockstep/model/units"
)

// Unit says what a unit of a database means, which may spell it in its own way, or
// which one a signal has that says none or a wrong one.
type Unit struct {
	Of Word   // a unit as it is in the database, or MESSAGE.SIGNAL, which goes before
	Is string // such as "km/h"
}

func (r *reader) units(n ast.Node, dst *[]Unit, what string) {
	for _, e := range r.pairs(n, what) {
		u := Unit{keyWord(e), r.word(e.Value, what+": "+keyWord(e).Text).Text}
		if _, err := units.Parse(u.Is); err != nil && r.err == nil {
			r.fail(e.Value, "%s: %s", what, strings.TrimPrefix(err.Error(), "model: "))
		}
		*dst = append(*dst, u)
	}
}

// database reads the database of a bus, leniently (check says where), and gives its
// signals the units that the bench says they have.
func (b *Bench) database(bus *Bus) (*sigmap.Database, error) {
	file, data, err := b.Read(bus.Database)
	if err != nil {
		return nil, err
	}
	db, list, err := dbc.ParseLenient(file, data)
	if err != nil {
		return nil, err
	}
	bus.lenient = len(list)
	spelled, signals := map[string][]*sigmap.Signal{}, map[string]*sigmap.Signal{}
	var known []string
	for i := range db.Messages {
		m := &db.Messages[i]
		for j := range m.Signals {
			s := &m.Signals[j]
			if spelled[s.Unit] == nil {
				known = append(known, s.Unit)
			}
			spelled[s.Unit], signals[m.Name+"."+s.Name] = append(spelled[s.Unit], s), s
			known = append(known, m.Name+"."+s.Name)
		}
	}
	for _, u := range bus.Units {
		for _, s := range spelled[u.Of.Text] {
			s.Unit = u.Is
		}
	}
	for _, u := range bus.Units {
		if s := signals[u.Of.Text]; s != nil {
			s.Unit = u.Is
		} else if spelled[u.Of.Text] == nil {
			return nil, b.errorf(u.Of, "bus %q: units: %s has no unit and no signal MESSAGE.SIGNAL %q%s",
				bus.Name.Text, file, u.Of.Text, units.Meant(u.Of.Text, known))
		}
	}
	return db, nil
}
