package sigmap

import (
	"cmp"
	"slices"

	"lockstep/io/can"
)

// phaseWindow is the number of ticks that choosePhases considers.
const phaseWindow = 1 << 14

// choosePhases sets the phases left to Bind, for the shortest cycles first. It takes the
// phase with the least peak load among the ticks of the frame, the first of equal ones.
func (b *binder) choosePhases() {
	var load [phaseWindow]int // load of each tick, bits
	put := func(t *Tx) {
		for k := t.PhaseTicks; k < phaseWindow; k += t.CycleTicks {
			load[k] += t.MaxBits()
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
		for p := range min(t.CycleTicks, phaseWindow) {
			most := 0
			for k := p; k < phaseWindow; k += t.CycleTicks {
				most = max(most, load[k])
			}
			if p == 0 || most < least {
				t.PhaseTicks, least = p, most
			}
		}

		put(t)
	}
}

// MaxBits returns the longest duration of a frame of t on the bus, in bit times: for a
// classic frame of s bytes g + 8s + 13 + (g+8s-1)/4 with g = 34 or 54 (Davis et al.,
// Real-Time Systems 35, 2007, eq. 1); for a CAN FD frame the sum of MaxBitsFD.
func (t *Tx) MaxBits() int {
	if t.Flags&can.FlagFDF != 0 {
		slow, fast := t.MaxBitsFD()
		return slow + fast
	}

	g := 34
	if t.ID&can.EFF != 0 {
		g = 54
	}
	return g + 8*t.Len + 13 + (g+8*t.Len-1)/4
}

// MaxBitsFD returns the longest duration of a CAN FD frame in bits at the nominal rate and,
// from its BRS bit to the end of its checksum, in bits at the data rate: ISO 11898-1:2015.
// Head and data have a stuff bit after the first five bits and after each four more, none
// at their end. The stuff count and the checksum of 17 or 21 bits have fixed stuff bits.
// The end of the frame and the interframe space have 13 bits.
func (t *Tx) MaxBitsFD() (slow, fast int) {
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
