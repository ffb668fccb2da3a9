package bench

import (
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

func TestOwnLengthFollowsTheTables(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"constant", "3", 10 * time.Second},
		{"table that ends flat", "{table: [[0, 0], [1, 5], [3, 5]]}", 3 * time.Second},
		{"table that ends in a change", "{table: [[0, 0], [1, 5]]}", 11 * time.Second},
		{"step", "{step: {height: 1, startTime: 0.9 s}}", 10900 * time.Millisecond},
		{"sum", "{sum: [{table: [[0, 0], [1, 5], [3, 5]]}, {product: [2, {table: [[0, 1], [4, 2], [7, 2]]}]}]}", 7 * time.Second},
		{"periodic", "{table: [[0, 0], [1, 5]], period: 2 s}", 10 * time.Second},
	} {
		p, err := plantfile.Load("t.yaml", []byte("plant: t\ninputs: {tau: {unit: N.m, delay: 0, default: "+c.value+"}}\nelements:\n"+
			"  body: {type: inertia, J: 1}\n  push: {type: torque, flange: body, tau: tau}\noutputs: {w: {speed: body}}\n"), library.Elements())
		if err != nil {
			t.Fatal(err)
		}
		sys, err := assemble.System(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := OwnLength(sys, nil, time.Millisecond); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := OwnLength(sys, []bool{true}, time.Millisecond); got != 10*time.Second {
			t.Errorf("%s: %v with the input driven, want 10 s", c.name, got)
		}
	}
}

// TestOwnLengthOfHugeTablesIsALength has a table whose end does not fit nanoseconds.
func TestOwnLengthOfHugeTablesIsALength(t *testing.T) {
	sys := &model.System{Signals: []model.Signal{{Source: model.Source{T: []float64{0, 1e12}, V: []float64{0, 0}}}}}
	if got := OwnLength(sys, nil, time.Millisecond); got != 1e9*time.Second {
		t.Errorf("length %v, want 1e9 s", got)
	}
}
