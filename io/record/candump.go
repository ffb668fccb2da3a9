package record

import (
	"bufio"
	"fmt"
	"math"

	"lockstep/io/can"
)

// candump writes the log form of candump -L, with the direction behind it that
// can-utils add themselves: (SECONDS.MICROSECONDS) INTERFACE ID#DATA R, or T for sent.
type candump struct {
	h     *Header
	out   *bufio.Writer
	clock clock
	line  []byte
}

func newCandump(to Target, h *Header) (Exporter, error) {
	return &candump{h: h, out: bufio.NewWriter(to), clock: clock{last: math.MinInt64}}, nil
}

func (x *candump) Write(e *Entry) error {
	if e.Kind != FrameEntry {
		return nil
	}
	f := &e.Frame
	t := max(0, x.clock.since(x.h.time(f.Time, f.Tick)))
	b := fmt.Appendf(x.line[:0], "(%010d.%06d) %s ", t/1e9, t%1e9/1e3, x.h.bus(f.Bus))
	b = appendCandump(b, &f.Frame)
	if f.Sent {
		b = append(b, " T\n"...)
	} else {
		b = append(b, " R\n"...)
	}
	x.line = b
	_, err := x.out.Write(b)
	return err
}

// appendCandump appends ID#DATA, ID#R or ID##FLAGS DATA.
func appendCandump(b []byte, f *can.Frame) []byte {
	switch {
	case f.ID&can.ERR != 0:
		b = fmt.Appendf(b, "%08X", f.ID&(can.ERR|can.MaskEFF))
	case f.ID&can.EFF != 0:
		b = fmt.Appendf(b, "%08X", f.ID&can.MaskEFF)
	default:
		b = fmt.Appendf(b, "%03X", f.ID&can.MaskSFF)
	}
	switch {
	case f.ID&can.RTR != 0:
		b = append(b, "#R"...)
		if f.Len > 0 {
			b = append(b, '0'+min(f.Len, 8))
		}
		return b
	case f.FD():
		b = fmt.Appendf(b, "##%X", f.Flags&(can.FlagBRS|can.FlagESI))
	default:
		b = append(b, '#')
	}
	return fmt.Appendf(b, "%X", f.Data[:f.Len])
}

func (x *candump) Close() error { return x.out.Flush() }
