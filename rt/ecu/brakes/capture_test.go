package brakes

import (
	"math"
	"testing"
)

// rollTurns gives a capture the edges of 10 turns of a wheel of 48 teeth at 100 rad/s, without the edges for which lost
// holds, and returns the number of edges made.
func rollTurns(c *capture, lost func(n int) bool) (made int) {
	pitch := 2 * math.Pi / 48 / 100
	for n := range 480 {
		if !lost(n) {
			c.take(float64(n)*pitch, wordDirection, 48)
			made++
		}
	}
	return made
}

func TestMissingEdgesAreFoundAndCounted(t *testing.T) {
	for _, c := range []struct {
		name             string
		lost             func(n int) bool
		tooth, scattered bool
	}{
		{"no edge", func(int) bool { return false }, false, false},
		{"one tooth", func(n int) bool { return n%48 == 7 }, true, false},
		{"each fourth", func(n int) bool { return n%4 == 3 }, false, true},
		{"three of four from the third turn on", func(n int) bool { return n > 96 && n%4 != 0 }, false, true},
	} {
		var in capture
		if made := rollTurns(&in, c.lost); made < 100 {
			t.Fatalf("%s: %d edges made", c.name, made)
		}
		last := 479
		for c.lost(last) {
			last--
		}
		if got := in.n; got != uint8(last+1) {
			t.Errorf("%s: %d edges counted, want %d, modulo 256", c.name, got, uint8(last+1))
		}
		if got := in.turns >= sameToothTurns; got != c.tooth {
			t.Errorf("%s: the tooth is missing in %d turns", c.name, in.turns)
		}
		if got := in.scattered >= scatteredEdges; got != c.scattered {
			t.Errorf("%s: %d edges are missing at various teeth", c.name, in.scattered)
		}
	}
}

func TestStoppedWheelHasNoMissingEdge(t *testing.T) {
	var in capture
	v, at := 100.0, 0.0
	for v > 0.1 { // brakes at 300 rad/s2
		at += 2 * math.Pi / 48 / v
		v -= 300 * 2 * math.Pi / 48 / v
		in.take(at, wordDirection|wordBackward, 48)
	}
	if in.turns != 0 || in.scattered != 0 || in.direction() != -1 {
		t.Errorf("%+v", in)
	}
	if in.age(at+1) != maxEdgeAge || !(math.Abs(in.age(at+0.01)-0.01) < 1e-12) {
		t.Errorf("ages %g and %g s", in.age(at+1), in.age(at+0.01))
	}
}
