package rt

import (
	"unsafe"

	"lockstep/io/wire"
)

// wireWords is wire.Counts as 8-byte words.
type wireWords [unsafe.Sizeof(wire.Counts{}) / 8]uint64

// WireCounts returns the counts of the images by wire, over all such buses.
func (p *StatusBlock) WireCounts() (c wire.Counts) {
	to := (*wireWords)(unsafe.Pointer(&c))
	for i := range to {
		to[i] = p.wire[i].Load()
	}
	return c
}

// publishWire writes the counts of the images by wire to the status block.
//
//go:nosplit
func (l *Loop) publishWire() {
	if l.cfg.Wires == nil {
		return
	}
	var sum wireWords
	for _, bus := range l.buses {
		if c := bus.WireCounts(); c != nil {
			from := (*wireWords)(unsafe.Pointer(c))
			for i := range sum {
				sum[i] += from[i]
			}
		}
	}
	for i := range sum {
		l.status.wire[i].Store(sum[i])
	}
}
