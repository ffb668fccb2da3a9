package bench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// rotated is the rotation of an embedded bench, with what it is made from.
func rotated(t *testing.T, bench string, k *Soak, longest time.Duration) (*rotation, *Handover) {
	t.Helper()
	b, err := Load(bench)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := k.rotation(h, longest)
	if err != nil {
		t.Fatal(err)
	}
	return r, h
}

func TestX(t *testing.T) {
	for _, n := range []string{"powershift-bench", "truck-bench", "abs-bench", "wsp-bench"} {
		begin := time.Now()
		r, h := rotated(t, n, &Soak{}, 10*time.Minute)
		t.Log(n, time.Since(begin), len(r.turns))
		for _, turn := range r.turns {
			s, err := turn.plan(0)(h)
			t.Log(turn.kind, turn.ticks, err)
			if turn.kind == "faults" {
				t.Log(len(s.Faults))
				t.Log(string(s.text))
			}
		}
	}
	_ = slices.Contains[[]string]
	_ = strings.Contains
}
