package codegen

import "testing"

func TestZZ(t *testing.T) {
	for i := range 40 {
		s := randomPlant(t, uint64(i))
		t.Log(i, s.tables.N, s.tables.Mc, len(s.tables.Modes), s.tables.Net != nil, s.tables.M-s.tables.FirstLaw, len(s.tables.Guards), len(s.tables.Gapped), len(s.tables.Switches), len(s.tables.Pulses), s.tables.Scheme)
	}
}
