package kernel

import (
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

func TestFirstRootIsTheFirstChangeOfSign(t *testing.T) {
	k := prepare(t, powershift(), Options{Period: ms(5)})
	for name, c := range map[string]struct {
		p    []float64
		want float64 // 1.5: none
	}{
		"none":                     {[]float64{1, 0, 1}, 1.5},
		"negative from the start":  {[]float64{-1e-18, 1}, 0},
		"line":                     {[]float64{0.3, -1}, 0.3},
		"at the end":               {[]float64{1, -1}, 1},
		"leaves zero":              {[]float64{0, 1, -2}, 0.5},
		"first of three":           {[]float64{0.2 * 0.5 * 0.8, -(0.2*0.5 + 0.5*0.8 + 0.2*0.8), 1.5, -1}, 0.2},
		"dip between two samples":  {[]float64{0.71*0.71 - 1e-6, -1.42, 1}, 0.709},
		"dip in the first samples": {[]float64{0.03*0.03 - 1e-6, -0.06, 1}, 0.029},
		"touches from above":       {[]float64{0.71*0.71 + 1e-12, -1.42, 1}, 1.5},
		"cubic, late":              {[]float64{1e-9, 1e-3, 0, -1.1e-3}, 0.953463},
	} {
		k.poly = c.p
		got, ok := k.firstRoot(polynomial)
		if ok != (c.want <= 1) || ok && !scalar.EqualWithinAbs(got, c.want, 1e-6) {
			t.Errorf("%s: root at %.9g (%t), want %g", name, got, ok, c.want)
		}
		if ok && !(got <= 0) && !(k.curveAt(polynomial, got) <= 0) {
			t.Errorf("%s: still %g at the root", name, k.curveAt(polynomial, got))
		}
	}
}
