package record

import (
	"bufio"
	"fmt"
	"math"

	"lockstep/io/framelog"
)

// newCandump starts the log format of candump -L, followed by the direction as in can-utils:
// (SECONDS.MICROSECONDS) INTERFACE ID#DATA R, or T for sent.
func newCandump(to Target, h *Header) (Exporter, error) {
	x := &lineExporter{h: h, out: bufio.NewWriter(to), clock: clock{last: math.MinInt64}}
	x.format = x.appendCandump
	return x, nil
}

// appendCandump appends the line of an entry in a candump log.
func (x *lineExporter) appendCandump(b []byte, e *Entry) []byte {
	if e.Kind != FrameEntry {
		return b
	}
	f := &e.Frame
	t := max(0, x.clock.elapsed(x.h.timeOr(f.Time, f.Tick)))
	b = fmt.Appendf(b, "(%010d.%06d) %s ", t/1e9, t%1e9/1e3, x.h.busName(f.Bus))
	b = framelog.AppendCandump(b, &f.Frame)
	if f.Sent {
		return append(b, " T\n"...)
	}
	return append(b, " R\n"...)
}
