package bench_test

import (
	"testing"

	"lockstep/model/plantfile"
	"lockstep/rt/bench"
)

// A start asks for the parameters several times; a long plant file takes a tenth of a second to read.
func TestParametersAreKeptWithTheTables(t *testing.T) {
	b, err := bench.Load("powershift-bench")
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	first, err := h.Parameters(nil)
	if err != nil || len(first) == 0 || len(h.Tunable()) == 0 {
		t.Fatalf("%d parameters, %v", len(first), err)
	}
	again, err := h.Parameters(nil)
	if err != nil || &again[0] != &first[0] {
		t.Errorf("the plant file is read again for its parameters, %v", err)
	}
	changed, err := h.Parameters([]plantfile.Assignment{{Name: "mu_oil", Value: "0.15"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range changed {
		want := first[i].Value
		if p.Name == "mu_oil" {
			want = 0.15
		}
		if p.Value != want {
			t.Errorf("with mu_oil=0.15 parameter %s is %g, want %g", p.Name, p.Value, want)
		}
	}
	if kept, err := h.Parameters(nil); err != nil || kept[0].Value != first[0].Value {
		t.Errorf("a change of a parameter changes the parameters of the bench, %v", err)
	}
}
