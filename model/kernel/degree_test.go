package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"lockstep/model"
)

// What the Taylor polynomial leaves out is below rounding in each mode, for any state and signals: with states and rates
// of size 1, scaled by the energy of the states, all terms above the degree add up to less than 5e-17. The terms are
// computed with the matrices themselves, the degree is chosen by a bound of their powers.
func TestTaylorRemainderIsBelowRounding(t *testing.T) {
	light := rig{J: []float64{1e-5, 1, 1e-3, 10}, X0: make([]float64, 7),
		Springs:   []spring{{0, 1, 0.02, 1e-4}, {1, 2, 30, 0.05}, {2, 3, 2, 0.1}},
		Frictions: []contact{{W: []float64{1, 0, 0, 0}, K: always(1)}, {W: []float64{0, 1, -1, 0}, K: always(1)}}}
	r, lowered := rand.New(rand.NewPCG(1, 2)), 0
	for name, sys := range map[string]*model.System{
		"powershift": powershift(), "oscillator": oscillator(180, 1, 0).system(), "light and heavy": light.system(),
		"redundant": under([8]float64{400, 300, 200, 500, 300, 505, 30, 510}, table(0, 0, 0.2, 6000)),
	} {
		tab, err := Prepare(sys, Options{Period: ms(5)})
		if err != nil {
			t.Fatal(err)
		}
		n, size, largest := tab.N, stateScales(tab.storedEnergy(sys.E)), 0.0
		vector := func() []float64 {
			v := make([]float64, n)
			for i := range v {
				v[i] = 2*r.Float64() - 1
			}
			return v
		}
		for q := range tab.Modes {
			moves := scale(tab.Modes[q].A, tab.Delta)
			for at := range moves {
				moves[at] *= size[at/n] / size[at%n]
			}
			for range 3 {
				c, left := vector(), 0.0
				for j := range 40 {
					c = product(moves, c, n, n, 1)
					if j < 2 || j == 2 && tab.FirstLaw < tab.M {
						c = sum(c, vector())
					}
					c = scale(c, 1/float64(j+1))
					if j+1 > tab.Degree {
						for _, v := range c {
							left += math.Abs(v)
						}
					}
				}
				largest = max(largest, left)
			}
		}
		if !(largest <= 5e-17) {
			t.Errorf("%s: the polynomial of degree %d leaves out %.2g", name, tab.Degree, largest)
		}
		spectral := degree(max(tab.Radius, tab.WaveRate) * tab.Delta)
		if tab.Degree < spectral {
			lowered++
		}
		t.Logf("%s: degree %d, by the eigenvalues %d; left out %.2g", name, tab.Degree, spectral, largest)
	}
	if lowered == 0 {
		t.Error("no plant has a lower degree than its eigenvalues suggest")
	}
}
