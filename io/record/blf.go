package record

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"time"

	"lockstep/io/can"
)

// blf writes Vector's binary log: a header of 144 bytes, which is completed at the
// end, and containers of deflated objects. Events are global markers. A file without
// its end can be read: every container stands for itself.
//
// After an object the format has as many zeros as its length leaves when divided by 4,
// which aligns nothing when that is odd; the objects inside a container are made to
// leave 0.
type blf struct {
	h       *Header
	to      Target
	clock   clock
	at      int64        // bytes of the file
	objects bytes.Buffer // of the next container
	packed  bytes.Buffer
	deflate *zlib.Writer
	full    uint64 // bytes of the file if nothing were deflated
	count   uint32 // of objects
}

// Types and sizes of objects.
const (
	blfMessage   = 1
	blfContainer = 10
	blfError     = 73
	blfMarker    = 96
	blfFD        = 100

	blfHeader  = 144
	blfObject  = 32        // bytes before the body of an object
	blfOutside = 32        // of a container
	blfMost    = 128 << 10 // bytes of objects in a container
)

func newBLF(to Target, h *Header) (Exporter, error) {
	x := &blf{h: h, to: to, clock: clock{start: h.Start}, at: blfHeader, full: blfHeader}
	x.deflate = zlib.NewWriter(&x.packed)
	return x, x.header()
}

// header writes the file's header.
func (x *blf) header() error {
	b := append(make([]byte, 0, blfHeader), "LOGG"...)
	b = binary.LittleEndian.AppendUint32(b, blfHeader)
	b = append(b, 0, 0, 0, 0) // application: unknown, version 0.0.0
	b = append(b, 2, 6, 8, 1) // of the format
	b = binary.LittleEndian.AppendUint64(b, uint64(x.at))
	b = binary.LittleEndian.AppendUint64(b, x.full)
	b = binary.LittleEndian.AppendUint32(b, x.count)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = appendSystemTime(b, x.h.Start)
	b = appendSystemTime(b, x.h.Start+x.clock.last)
	_, err := x.to.WriteAt(b[:blfHeader], 0)
	return err
}

// appendSystemTime appends a SYSTEMTIME in the local time of this machine, as the
// format has no time zone.
func appendSystemTime(b []byte, ns int64) []byte {
	t := time.Unix(0, ns)
	for _, v := range [...]int{t.Year(), int(t.Month()), int(t.Weekday()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond() / 1e6} {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

func (x *blf) Write(e *Entry) error {
	switch e.Kind {
	case FrameEntry:
		kind, body := blfBody(&e.Frame)
		return x.object(kind, x.h.time(e.Frame.Time, e.Frame.Tick), body)
	case EventEntry:
		return x.object(blfMarker, x.h.time(e.Event.Time, e.Event.Tick), blfEvent(&e.Event))
	}
	return nil
}

// blfBody is the object of a frame.
func blfBody(f *Frame) (kind uint32, b []byte) {
	id := f.ID & can.MaskSFF
	if f.ID&can.EFF != 0 {
		id = f.ID&can.MaskEFF | 1<<31
	}
	flags := byte(0)
	if f.Sent {
		flags |= 1
	}
	if f.ID&can.RTR != 0 {
		flags |= 0x80
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(f.Bus)+1)
	switch {
	case f.ID&can.ERR != 0:
		b = append(b, make([]byte, 10)...) // length, flags, code, position, DLC, 0
		b = append(b, make([]byte, 12)...) // frame length, identifier, flags, 0
		return blfError, append(b, f.Data[:8]...)
	case f.FD():
		b = append(b, flags, dlc(f.Len))
		b = binary.LittleEndian.AppendUint32(b, id)
		b = append(b, 0, 0, 0, 0, 0) // frame length, ns; bits of the arbitration phase
		b = append(b, 1|f.Flags&can.FlagBRS<<1|f.Flags&can.FlagESI<<1, f.Len, 0, 0, 0, 0, 0)
		return blfFD, append(b, f.Data[:]...)
	default:
		b = append(b, flags, min(f.Len, 8))
		b = binary.LittleEndian.AppendUint32(b, id)
		return blfMessage, append(b, f.Data[:8]...)
	}
}

// blfEvent is a global marker in the group lockstep, named as the kind of the event.
func blfEvent(e *Event) []byte {
	group, name, text := "lockstep", e.Kind.String(), []byte(e.Text)
	for (len(group)+len(name)+len(text))%4 != 0 {
		text = append(text, ' ')
	}
	b := binary.LittleEndian.AppendUint32(nil, 0)     // type of a commented event
	b = binary.LittleEndian.AppendUint32(b, 0xFFFFFF) // foreground
	b = binary.LittleEndian.AppendUint32(b, 0x3333FF) // background: red
	b = append(b, 0, 0, 0, 0)                         // 0, not relocatable
	for _, n := range [...]int{len(group), len(name), len(text)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(b, make([]byte, 12)...)
	b = append(append(b, group...), name...)
	return append(b, text...)
}

// object puts an object into the container, which is written when it is full.
func (x *blf) object(kind uint32, at int64, body []byte) error {
	if x.objects.Len()+blfObject+len(body) > blfMost {
		if err := x.container(); err != nil {
			return err
		}
	}
	b := blfBase(kind, blfObject, blfObject+len(body))
	b = binary.LittleEndian.AppendUint32(b, 2) // times in ns
	b = append(b, 0, 0, 0, 0)                  // client, version
	b = binary.LittleEndian.AppendUint64(b, uint64(x.clock.since(at)))
	x.objects.Write(b)
	x.objects.Write(body)
	x.count++
	return nil
}

// blfBase is the first part of an object's header.
func blfBase(kind uint32, header, size int) []byte {
	b := binary.LittleEndian.AppendUint16([]byte("LOBJ"), uint16(header))
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	return binary.LittleEndian.AppendUint32(b, kind)
}

// container writes the objects there are.
func (x *blf) container() error {
	n := x.objects.Len()
	if n == 0 {
		return nil
	}
	x.packed.Reset()
	x.deflate.Reset(&x.packed)
	_, _ = x.objects.WriteTo(x.deflate) // into memory
	_ = x.deflate.Close()
	size := blfOutside + x.packed.Len()
	b := blfBase(blfContainer, 16, size)
	b = append(b, 2, 0, 0, 0, 0, 0, 0, 0) // deflated
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = append(b, 0, 0, 0, 0)
	b = append(b, x.packed.Bytes()...)
	b = append(b, make([]byte, size%4)...)
	if _, err := x.to.WriteAt(b, x.at); err != nil {
		return err
	}
	x.at += int64(len(b))
	x.full += uint64(blfOutside + n)
	return nil
}

func (x *blf) Close() error {
	if err := x.container(); err != nil {
		return err
	}
	return x.header()
}
