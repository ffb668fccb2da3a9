package record

import (
	"bufio"
	"fmt"
	"strings"
	"time"

	"lockstep/io/can"
)

// ascDate has exactly three decimals of the second, as CANoe requires.
const ascDate = "Mon Jan 2 15:04:05.000 2006"

// newASC starts Vector's text log. Its date is the local time of this machine, because the format
// has no time zone. Times are seconds since the date, a whole millisecond, with six decimals; channels
// count from 1, and events are comments.
func newASC(to Target, h *Header) (Exporter, error) {
	x := &lineExporter{h: h, out: bufio.NewWriter(to), clock: clock{start: h.wholeMillisecond()}, end: "End TriggerBlock\n"}
	x.format = x.appendASC
	date := time.Unix(0, h.Start).Format(ascDate)
	_, err := fmt.Fprintf(x.out, "date %s\nbase hex  timestamps absolute\nno internal events logged\n"+
		"Begin Triggerblock %s\n   0.000000 Start of measurement\n", date, date)
	return x, err
}

// appendASC appends the line of an entry in an ASC log.
func (x *lineExporter) appendASC(b []byte, e *Entry) []byte {
	switch e.Kind {
	case FrameEntry:
		b = appendSeconds(b, x.clock.elapsed(x.h.timeOr(e.Frame.Time, e.Frame.Tick)))
		b = appendASCFrame(b, &e.Frame)
	case EventEntry:
		b = append(b, "// "...)
		b = appendSeconds(b, x.clock.elapsed(x.h.timeOr(e.Event.Time, e.Event.Tick)))
		b = fmt.Appendf(b, " tick %d %s: %s", e.Event.Tick, e.Event.Kind, lineBreaks.Replace(e.Event.Text))
	default:
		return b
	}

	return append(b, '\n')
}

func appendSeconds(b []byte, ns int64) []byte {
	return fmt.Appendf(b, "%4d.%06d", ns/1e9, ns%1e9/1e3)
}

// lineBreaks replaces line breaks, which would end a comment.
var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// appendASCFrame appends channel, identifier, direction and data of a frame.
func appendASCFrame(b []byte, f *Frame) []byte {
	channel := int(f.Bus) + 1
	if f.ID&can.ERR != 0 {
		return fmt.Appendf(b, " %d  ErrorFrame", channel)
	}
	id := fmt.Sprintf("%X", f.ID&can.MaskSFF)
	if f.ID&can.EFF != 0 {
		id = fmt.Sprintf("%Xx", f.ID&can.MaskEFF)
	}
	direction := "Rx"
	if f.Sent {
		direction = "Tx"
	}
	switch {
	case f.ID&can.RTR != 0:
		return fmt.Appendf(b, " %d  %-15s %-4s r %x", channel, id, direction, min(f.Len, 8))
	case f.FD():
		brs, esi := f.Flags&can.FlagBRS, f.Flags&can.FlagESI>>1
		b = fmt.Appendf(b, " CANFD %3d %-4s %8s  %32s %d %d %x %2d",
			channel, direction, id, "", brs, esi, can.DLC(f.Len), f.Len)
		b = appendBytes(b, f.Data[:f.Len])
		// duration, bits, flags (12 FD, 13 BRS, 14 ESI), CRC, four bit timings
		return fmt.Appendf(b, " %8d %4d %8X %8d %8d %8d %8d %8d", 0, 0, 1<<12|uint(brs)<<13|uint(esi)<<14, 0, 0, 0, 0, 0)
	default:
		b = fmt.Appendf(b, " %d  %-15s %-4s d %x", channel, id, direction, f.Len)
		return appendBytes(b, f.Data[:f.Len])
	}
}

func appendBytes(b, data []byte) []byte {
	for _, v := range data {
		b = fmt.Appendf(b, " %02X", v)
	}
	return b
}
