package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lockstep/rt/bench"
)

func TestEveryFaultHasEveryKindThatTheBenchAllows(t *testing.T) {
	for name, missing := range map[string][]string{
		"powershift-bench": {"checksum"}, // no message is protected by one
		"truck-bench":      nil,
		"abs-bench":        {"checksum", "does_not_close", "does_not_open"}, "wsp-bench": {"checksum", "does_not_close", "does_not_open"}, // no brake is a friction element with an input
	} {
		b, err := bench.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		h, err := bench.Prepare(b)
		if err != nil {
			t.Fatal(err)
		}
		text := &strings.Builder{}
		fmt.Fprint(text, "scenario: faults\nfaults:\n")
		for i, f := range EveryFault(h, 0) {
			fmt.Fprintf(text, "  - {name: fault %d, %s}\n", i+1, f)
		}
		s, err := Parse("faults", []byte(text.String()), h)
		if err != nil {
			t.Fatal(err)
		}
		var kinds, never []string
		for i := range s.Faults {
			kinds = append(kinds, s.Faults[i].kind.Text)
		}
		for _, k := range faultKinds {
			if !slices.Contains(kinds, k.key) {
				never = append(never, k.key)
			}
		}
		slices.Sort(never)
		if !slices.Equal(never, missing) {
			t.Errorf("%s: %d faults, missing kinds %q, want %q", name, len(s.Faults), never, missing)
		}
	}
}
