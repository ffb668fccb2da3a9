package tir_test

import (
	"math"
	"strings"
	"testing"

	"lockstep/io/tir"
)

const example = `$ a tyre
[UNITS]
LENGTH = 'mm'   $ of radii
FORCE  = 'newton'
[MODEL]
FITTYP = 61 ! version
TYRESIDE = 'Left'
[VERTICAL]
fnomin = 4.0E+03
[SHAPE]
{radial width}
 1.0 0.0
 1.0 0.4
[LATERAL_COEFFICIENTS]
PKY1 = -20.5
NOTE = '$ in quotes'
`

func TestFileHasKeysOfAllSections(t *testing.T) {
	f, err := tir.Parse("a.tir", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]float64{"FITTYP": 61, "FNOMIN": 4000, "PKY1": -20.5} {
		if got := f.Values[key].Number; got != want {
			t.Errorf("%s is %g, want %g", key, got, want)
		}
	}
	if v := f.Values["TYRESIDE"]; v.Text != "Left" || !math.IsNaN(v.Number) || v.Line != 7 {
		t.Errorf("TYRESIDE is %+v", v)
	}
	if got := f.Values["NOTE"].Text; got != "$ in quotes" {
		t.Errorf("NOTE is %q", got)
	}
	if size, err := f.Unit("LENGTH"); size != 1e-3 || err != nil {
		t.Errorf("LENGTH is %g m, %v", size, err)
	}
	if size, err := f.Unit("ANGLE"); size != 1 || err != nil {
		t.Errorf("ANGLE is %g rad, %v", size, err)
	}
	if len(f.Values) != 5 {
		t.Errorf("%d keys: %v", len(f.Values), f.Values)
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"[MODEL]", "[MODEL", `a.tir:5: tir: "[MODEL" is not a section, such as [UNITS]`},
		{"PKY1 = -20.5", "PKY1 -20.5", `a.tir:15: tir: "PKY1 -20.5" is not KEY = VALUE`},
		{"PKY1 = -20.5", "PKY1 =", `a.tir:15: tir: "PKY1 =" is not KEY = VALUE`},
		{"PKY1 = -20.5", "PKY1 = nan", `a.tir:15: tir: PKY1: nan is not a finite number`},
		{"PKY1 = -20.5", "PKY1 = 1e999", `a.tir:15: tir: PKY1: 1e999 is not a finite number`},
		{"PKY1 = -20.5", "FITTYP = 5", `a.tir:15: tir: FITTYP is already in line 6`},
		{"'Left'", "'Left", `a.tir:7: tir: TYRESIDE: 'Left: the closing quote is missing`},
	} {
		_, err := tir.Parse("a.tir", []byte(strings.Replace(example, c.old, c.new, 1)))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.new, err, c.want)
		}
	}
	f, err := tir.Parse("a.tir", []byte("[UNITS]\nFORCE = 'stone'"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Unit("FORCE"); err == nil || err.Error() != `a.tir:2: tir: FORCE: unit "stone" is not known` {
		t.Errorf("got %v", err)
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("[UNITS]\nA='\n{\n=1\n'"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := tir.Parse("a.tir", data)
		if (file == nil) == (err == nil) {
			t.Fatalf("%v, %v", file, err)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "a.tir:") || strings.Contains(err.Error(), "\n") {
				t.Errorf("not one line with the file: %q", err)
			}
			return
		}
		for key, v := range file.Values {
			if math.IsInf(v.Number, 0) || v.Line < 1 || key == "" {
				t.Errorf("%q: %+v", key, v)
			}
		}
	})
}
