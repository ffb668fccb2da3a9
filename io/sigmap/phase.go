package sigmap

import (
	"cmp"
	"slices"

	"lockstep/io/can"
)

// window bounds how many ticks the choice of phases looks at.
const window = 1 << 14

// phases chooses those that are left to it, the shortest cycles first: the one at
// which the fullest tick that the frame is sent at is least full, the first of such.
func (b *binder) phases() {
	var load [window]int // bits, by tick
	put := func(t *Tx) {
		for k := t.PhaseTicks; k < window; k += t.CycleTicks {
			load[k] += t.Bits()
		}
	}
	var free []*Tx
	for i := range b.m.Tx {
		switch t := &b.m.Tx[i]; {
		case t.PhaseTicks < 0:
			free = append(free, t)
		case t.Send != OnChange:
			put(t)
		}
	}
	slices.SortStableFunc(free, func(x, y *Tx) int { return cmp.Compare(x.CycleTicks, y.CycleTicks) })
	for _, t := range free {
		least := 0
		for p := range min(t.CycleTicks, window) {
			most := 0
			for k := p; k < window; k += t.CycleTicks {
				most = max(most, load[k])
			}
			if p == 0 || most < least {
				t.PhaseTicks, least = p, most
			}
		}
		put(t)
	}
}

// Bits is what a frame of t takes of a bus at most, in bit times of a classic frame:
// (g + 8s + 13 + (g+8s-1)/4) bits with s bytes, g = 34 or 54 (Davis et al., Real-Time
// Systems 35, 2007, eq. 1). Of a CAN FD frame it is both phases, see BitsFD.
func (t *Tx) Bits() int {
	if t.Flags&can.FlagFDF != 0 {
		slow, fast := t.BitsFD()
		return slow + fast
	}
	g := 34
	if t.ID&can.EFF != 0 {
		g = 54
	}
	return g + 8*t.Len + 13 + (g+8*t.Len-1)/4
}

// BitsFD is what a CAN FD frame takes at most, in bits at the nominal rate and, from
// its BRS bit to the end of its checksum, at the data rate, by ISO 11898-1:2015: the
// head and the data with a stuff bit after the first five and then after each four
// more, none at their end; the stuff count and the checksum of 17 or 21 bits with fixed
// stuff bits; 13 of the end and the gap.
func (t *Tx) BitsFD() (slow, fast int) {
	head := 17 // SOF, 11 of the identifier, RRS, IDE, FDF, res, BRS
	if t.ID&can.EFF != 0 {
		head = 36 // and SRR, 18 more
	}
	crc, fixed := 17, 6 // fixed stuff bits: before the stuff count, then after each 4 bits
	if t.Len > 16 {
		crc, fixed = 21, 7
	}
	slow = head + (head-1)/4 + 13
	data := 1 + 4 + 8*t.Len // ESI, DLC
	fast = data + (head+data-2)/4 - (head-1)/4 + 4 + crc + fixed
	return slow, fast
}
