package fault

import (
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
)

// Profiles with checksums of 16, 32 and 64 bits.
func TestFaultsReachAllBitsOfAWideChecksum(t *testing.T) {
	for profile, bits := range map[string]int{"e2e-6": 16, "e2e-4": 32, "e2e-7": 64} {
		for name, c := range map[string]struct {
			f     Fault
			moves func(sum, right, first uint64) bool
		}{
			"random": {Fault{Kind: ChecksumRandom, Seed: 5}, func(sum, right, _ uint64) bool { return sum != right }},
			"frozen": {Fault{Kind: ChecksumFrozen}, func(sum, _, first uint64) bool { return sum == first }},
			"offset": {Fault{Kind: ChecksumOffset, N: 1}, func(sum, right, _ uint64) bool { return sum == (right+1)<<(64-bits)>>(64-bits) }},
			"value":  {Fault{Kind: ChecksumValue, N: 0x5A5A}, func(sum, _, _ uint64) bool { return sum == 0x5A5A }},
		} {
			p, err := sigmap.NewProtection(sigmap.ProtectionSpec{Profile: profile, DataIDs: []uint32{7}, Offset: 8},
				&messages.Message{Name: "M", Len: 32})
			if err != nil {
				t.Fatal(err)
			}
			m := testMap(t)
			m.Tx[0].Len, m.Tx[0].Protect = 32, []sigmap.Protection{p}
			c.f.Where, c.f.Start = SentFrame, Trigger{Tick: 2}
			s, err := New(Plan{Ranges: [][2]float64{{-30, 40}, {0, 10}}, Faults: []Fault{c.f}},
				System{PeriodNs: hNs, M: 2, P: 1, Maps: []*sigmap.Map{m}, Plant: &plant{on: make([]bool, 2)}})
			if err != nil {
				t.Fatal(err)
			}
			var first, seen uint64
			y := []float64{0}
			for k := int64(1); k <= 200; k++ {
				s.BeginTick(k, y)
				y[0] = float64(k)
				var f can.Frame
				s.PrepareCounters(0, 0)
				m.Encode(&f, 0, k, y, true)
				right := p.Checksum.Load(&f.Data)
				s.DisturbFrame(&f, 0, 0, k)
				sum := p.Checksum.Load(&f.Data)
				if k == 1 {
					first = right
				} else if !c.moves(sum, right, first) {
					t.Fatalf("%s, %s, tick %d: 0x%X, the right one is 0x%X", profile, name, k, sum, right)
				}
				seen |= sum
			}
			if all := p.Checksum.Mask(); (name == "random" || name == "offset") && seen != all {
				t.Errorf("%s, %s: the bits 0x%X were never set", profile, name, all&^seen)
			}
		}
	}
}
