package kernel_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"lockstep/hil_test/truth"
	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// The reference agrees with the truth file of CoupledClutches, an independent solution at tolerance
// 1e-11. The speeds, of range 10, agree within 1e-8 rad/s. The times of the four locks and
// break-aways that the Modelica Association publishes agree to 1e-5 s.
func TestReferenceAgreesWithTheTruthOfCoupledClutches(t *testing.T) {
	data, err := plants.Read("coupled-clutches")
	if err != nil {
		t.Fatal(err)
	}
	sys := assembledText(t, "coupled-clutches", data)
	table := truth.Read(t, "../plants/testdata/CoupledClutches.csv")
	rows := map[int64][]float64{} // by time in µs, the last of equal ones
	for i, at := range table.Time {
		rows[int64(math.Round(at*1e6))] = table.Rows[i]
	}
	ref := newReference(sys, nil, 1.5)
	worst, compared := 0.0, 0
	for i := int64(1); i <= 1500; i++ {
		ref.advance(t, float64(i)*1e-3, nil)
		row, ok := rows[i*1000]
		if !ok {
			continue
		}
		compared++
		w := row[2]
		for c := range 4 {
			worst = max(worst, math.Abs(ref.x[c]-w))
			if c < 3 {
				w += row[4+2*c]
			}
		}
	}
	if !(worst <= 1e-8) || compared < 1000 {
		t.Errorf("largest error %g rad/s at %d instants; at most 1e-8 at 1000 or more", worst, compared)
	}
	t.Logf("largest error %.2g rad/s at %d instants, %d steps, knife at %g", worst, compared, ref.steps, ref.knife)
	want := []refEvent{{0.79166, 0, -1, 0}, {0.83111, 0, 0, -1}, {0.90685, 0, -1, 0}, {1.00030, 0, 0, -1}, {1.25, 0, -1, 2},
		{0.70962, 1, -1, 0}, {1.14397, 2, -1, 0}}
	for _, w := range want {
		found := false
		for _, e := range ref.events {
			found = found || e.friction == w.friction && e.from == w.from && e.to == w.to && math.Abs(e.t-w.t) <= 1e-5
		}
		if !found {
			t.Errorf("no transition of clutch %d from %d to %d at %g s in %v", w.friction+1, w.from, w.to, w.t, ref.events)
		}
	}
}

// assembledText makes a System whose outputs are its states.
func assembledText(t rapid.TB, name string, text []byte) *model.System {
	t.Helper()
	p, err := plantfile.Load(name+".yaml", text, library.Elements())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	bare := *sys
	n := len(sys.X0)
	bare.Outputs, bare.C = sys.States, make([]float64, n*n)
	for i := range n {
		bare.C[i*n+i] = 1
	}
	bare.D, bare.Dc = make([]float64, n*len(sys.Signals)), make([]float64, n*len(sys.Frictions))
	return &bare
}
