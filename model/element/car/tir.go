package car

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lockstep/io/tir"
	"lockstep/model/element"
)

// versions are the versions of the formula by FITTYP of a .tir file. 6.2 adds terms of camber alone.
var versions = map[float64]string{52: "5.2", 6: "6.1", 60: "6.1", 61: "6.1", 62: "6.1"}

// tyreFile is a .tir file during reading.
type tyreFile struct {
	*element.Element
	*tir.File
}

// refuse reports an error in the file.
func (f *tyreFile) refuse(err error) { f.Element.Refuse(f.Place("tyre"), "tyre: %v", err) }

// readFile reads the data of a tyre from the .tir file that the key tyre names, beside the plant file.
func readFile(e *element.Element) data {
	name := e.Word("tyre")
	content, path, err := e.ReadFile(name)
	if err != nil {
		e.Refuse(e.Place("tyre"), "tyre: %v", err)
	}
	parsed, err := tir.Parse(path, content)
	f := tyreFile{e, parsed}
	if err != nil {
		f.refuse(err)
	}
	d := data{list: maps.Clone(given), version: f.version(), side: strings.ToLower(f.Values["TYRESIDE"].Text)}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if v, ok := f.Values[key]; ok {
			d.list[key] = f.number(key, 1)
			if !(math.Abs(d.list[key]) <= most) {
				f.refuse(f.Errorf(v.Line, "%s %g is outside ±%g", key, d.list[key], most))
			}
		}
	}
	for _, key := range needed {
		f.number(key, 1)
	}
	if v := f.Values["LMUV"]; v.Number != 0 && v.Line > 0 {
		f.refuse(f.Errorf(v.Line, "LMUV %s is not supported: friction does not fall with the slip speed; write 0", v.Text))
	}
	force, length := f.unit("FORCE"), f.unit("LENGTH")
	if f.unit("ANGLE") != 1 {
		f.refuse(f.Errorf(f.Units["ANGLE"].Line, "ANGLE %q: the coefficients must be those for radians", f.Units["ANGLE"].Text))
	}
	d.nominal = e.NumberOr("FNOMIN", 0)
	if d.nominal == 0 {
		d.nominal = f.positive("FNOMIN", force)
	}
	d.relaxationX, d.relaxationY = f.relaxation(d, force, length)
	d.pressure = f.pressure()
	return d
}

// version returns the version of the formula.
func (f *tyreFile) version() string {
	if f.Has("version") {
		return f.Word("version")
	}
	v, ok := f.Values["FITTYP"]
	if !ok {
		f.refuse(fmt.Errorf("%s: tir: FITTYP is missing; give version: 5.2 or 6.1", f.File.Name))
	}
	version, ok := versions[v.Number]
	if !ok {
		f.refuse(f.Errorf(v.Line, "FITTYP %s is not read; it is 52, 6, 61 or 62, or give version: 5.2 or 6.1", v.Text))
	}
	return version
}

// number returns the number of a key times the size of its unit.
func (f *tyreFile) number(key string, unit float64) float64 {
	v, ok := f.Values[key]
	if !ok {
		f.refuse(fmt.Errorf("%s: tir: %s is missing", f.File.Name, key))
	}
	if math.IsNaN(v.Number) {
		f.refuse(f.Errorf(v.Line, "%s: %.40q is not a number", key, v.Text))
	}
	return v.Number * unit
}

// positive returns the number of a key, which must be positive.
func (f *tyreFile) positive(key string, unit float64) float64 {
	x := f.number(key, unit)
	if !(x > 0) {
		f.refuse(f.Errorf(f.Values[key].Line, "%s %g is not positive", key, x))
	}
	return x
}

// unit returns the size of a unit of the section UNITS in SI.
func (f *tyreFile) unit(key string) float64 {
	size, err := f.File.Unit(key)
	if err != nil {
		f.refuse(err)
	}
	return size
}

// relaxation returns the relaxation lengths at the nominal load: those of the element, otherwise for 5.2
//
//	sigma_x = PTX1·R_0·LSGKP        sigma_y = PTY1·sin(2·atan(1/PTY2))·R_0·LSGAL
//
// and for 6.1 the quotients of slip stiffness and LONGITUDINAL_STIFFNESS or LATERAL_STIFFNESS (Pacejka, Tyre and
// Vehicle Dynamics, 3rd ed., eq. A3.7 and 7.8).
func (f *tyreFile) relaxation(d data, force, length float64) (x, y float64) {
	c := d.list
	along := func() float64 { return c["PTX1"] * f.positive("UNLOADED_RADIUS", length) * c["LSGKP"] }
	across := func() float64 {
		return c["PTY1"] * math.Sin(2*math.Atan(1/c["PTY2"])) * f.positive("UNLOADED_RADIUS", length) * c["LSGAL"]
	}
	if d.version == "6.1" {
		along = func() float64 {
			return d.nominal * math.Abs(c["PKX1"]*c["LKX"]) / f.positive("LONGITUDINAL_STIFFNESS", force/length)
		}
		across = func() float64 {
			stiffness := c["PKY1"] * d.nominal * math.Sin(c["PKY4"]*math.Atan(1/c["PKY2"])) * c["LKY"]
			return math.Abs(stiffness) / f.positive("LATERAL_STIFFNESS", force/length)
		}
	}
	read := func(key string, fromFile func() float64) float64 {
		if f.Has(key) {
			return f.Element.Number(key)
		}
		sigma := fromFile()
		if !(sigma >= shortest && sigma <= longest) {
			f.Element.Refuse(f.Place("tyre"), "%s of the file is %g m, outside %g to %g m; give it here", key, sigma, shortest, longest)
		}
		return sigma
	}
	return read("relaxation_x", along), read("relaxation_y", across)
}

// Bounds of a relaxation length, m.
const (
	shortest = 0.01
	longest  = 10.
)

// pressure returns the pressure of the tyre over the nominal one, less 1.
func (f *tyreFile) pressure() float64 {
	_, has := f.Values["INFLPRES"]
	_, nominal := f.Values["NOMPRES"]
	if f.Has("pressure") || !has || !nominal {
		return f.NumberOr("pressure", 0)
	}
	return f.number("INFLPRES", 1)/f.positive("NOMPRES", 1) - 1
}
