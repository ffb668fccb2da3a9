package car

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"lockstep/io/yamlfile"
	"lockstep/model/element"
	"lockstep/model/units"
)

// given are the coefficients of the Magic Formula that mf_tyre reads, by their names in a .tir file, with the
// values of those that are left out. Coefficients of camber are not among them: a wheel of planar_car stands
// upright.
var given = map[string]float64{
	"PCX1": 0, "PDX1": 0, "PDX2": 0, "PEX1": 0, "PEX2": 0, "PEX3": 0, "PEX4": 0, "PKX1": 0, "PKX2": 0, "PKX3": 0,
	"PHX1": 0, "PHX2": 0, "PVX1": 0, "PVX2": 0, "PPX1": 0, "PPX2": 0, "PPX3": 0, "PPX4": 0,
	"RBX1": 0, "RBX2": 0, "RCX1": 0, "REX1": 0, "REX2": 0, "RHX1": 0, "PTX1": 0, "PTX2": 0, "PTX3": 0,
	"PCY1": 0, "PDY1": 0, "PDY2": 0, "PEY1": 0, "PEY2": 0, "PEY3": 0, "PKY1": 0, "PKY2": 0, "PKY4": 2,
	"PHY1": 0, "PHY2": 0, "PVY1": 0, "PVY2": 0, "PPY1": 0, "PPY2": 0, "PPY3": 0, "PPY4": 0,
	"RBY1": 0, "RBY2": 0, "RBY3": 0, "RCY1": 0, "REY1": 0, "REY2": 0, "RHY1": 0, "RHY2": 0,
	"RVY1": 0, "RVY2": 0, "RVY4": 0, "RVY5": 0, "RVY6": 0, "PTY1": 0, "PTY2": 0,
	"LFZO": 1, "LCX": 1, "LMUX": 1, "LEX": 1, "LKX": 1, "LHX": 1, "LVX": 1, "LCY": 1, "LMUY": 1, "LEY": 1, "LKY": 1,
	"LHY": 1, "LVY": 1, "LXAL": 1, "LYKA": 1, "LVYKA": 1, "LSGKP": 1, "LSGAL": 1,
}

// needed are the coefficients without which there is no curve.
var needed = []string{"PCX1", "PDX1", "PKX1", "PCY1", "PDY1", "PKY1", "PKY2"}

// data are the data of a tyre: those of the keys, or of a .tir file.
type data struct {
	list                     map[string]float64 // coefficients
	nominal                  float64            // FNOMIN, N
	relaxationX, relaxationY float64            // m
	pressure                 float64            // over the nominal one, less 1
	version                  string             // "5.2" or "6.1"
	side                     string             // "left" or "right"; "": not given
}

// readData reads the data of a tyre.
func readData(e *element.Element) data {
	if e.Has("tyre") {
		e.Forbid("and tyre; the file has the coefficients", "coefficients")
		return readFile(e)
	}
	d := data{list: maps.Clone(given), nominal: e.Number("FNOMIN"), relaxationX: e.Number("relaxation_x"),
		relaxationY: e.Number("relaxation_y"), pressure: e.NumberOr("pressure", 0), version: "6.1"}
	if e.Has("version") {
		d.version = e.Word("version")
	}
	f, ok := e.Field("coefficients")
	if !ok {
		e.Refuse(e.At, "mf_tyre needs coefficients, or tyre (name of a .tir file)")
	}
	seen := map[string]bool{}
	for _, entry := range e.FieldsOf(f, e.What()+": coefficients") {
		if _, ok := given[entry.Key]; !ok {
			e.Refuse(entry.KeyAt, "coefficients: %q is not read%s", entry.Key, units.Meant(entry.Key, slices.Sorted(maps.Keys(given))))
		}
		d.list[entry.Key], seen[entry.Key] = number(e, entry), true
	}
	for _, key := range needed {
		if !seen[key] {
			e.Refuse(f.At, "coefficients: %s is missing", key)
		}
	}
	return d
}

// number reads a coefficient; its size is limited so that no quotient of two overflows.
func number(e *element.Element, f yamlfile.Field) float64 {
	v := e.Quantity(f, fmt.Sprintf("%s: coefficients: %s", e.What(), f.Key), units.Want("1"))
	if !(math.Abs(v) <= most) {
		e.Refuse(f.At, "coefficients: %s %g is outside ±%g", f.Key, v, most)
	}
	return v
}

// most is the largest coefficient.
const most = 1000.
