package record

import (
	"bytes"
	"compress/zlib"
	"time"

	"lockstep/io/can"
	"lockstep/io/framelog"
)

// blfExporter writes Vector's binary log: a header of 144 bytes, which is completed at the
// end, and containers of deflated objects. Events are global markers. A file without its
// end can be read, because every container is independent.
//
// The format pads an object by its length modulo 4, which does not align odd lengths; the
// objects inside a container therefore have a length divisible by 4.
type blfExporter struct {
	h            *Header
	to           Target
	clock        clock
	at           int64        // size of the file so far, bytes
	objects      bytes.Buffer // objects of the next container
	packed       bytes.Buffer
	deflate      *zlib.Writer
	unpackedSize uint64 // size of the file before deflation, bytes
	count        uint32 // number of objects
}

// Types and sizes of objects.
const (
	blfMarker = 96

	blfHeader       = 144
	blfContainerMax = 128 << 10 // size of the objects in a container, bytes
)

func newBLF(to Target, h *Header) (Exporter, error) {
	x := &blfExporter{h: h, to: to, clock: clock{start: h.wholeMillisecond()}, at: blfHeader, unpackedSize: blfHeader}
	x.deflate = zlib.NewWriter(&x.packed)
	return x, x.writeHeader()
}

// writeHeader writes the file's header.
func (x *blfExporter) writeHeader() error {
	b := pack(nil, []byte(framelog.BLFMagic), uint32(blfHeader),
		[4]byte{},           // application: unknown, version 0.0.0
		[4]byte{2, 6, 8, 1}, // of the format
		x.at, x.unpackedSize, x.count, uint32(0),
		systemTime(x.clock.start), systemTime(x.clock.start+x.clock.last))
	_, err := x.to.WriteAt(append(b, make([]byte, blfHeader-len(b))...), 0)
	return err
}

// systemTime returns a SYSTEMTIME in the local time of this machine: the format has no time zone.
func systemTime(ns int64) [8]uint16 {
	t := time.Unix(0, ns)
	return [8]uint16{
		uint16(t.Year()), uint16(t.Month()), uint16(t.Weekday()), uint16(t.Day()),
		uint16(t.Hour()), uint16(t.Minute()), uint16(t.Second()), uint16(t.Nanosecond() / 1e6),
	}
}

func (x *blfExporter) Write(e *Entry) error {
	switch e.Kind {
	case FrameEntry:
		kind, body := blfBody(&e.Frame)
		return x.addObject(kind, x.h.timeOr(e.Frame.Time, e.Frame.Tick), body)
	case EventEntry:
		return x.addObject(blfMarker, x.h.timeOr(e.Event.Time, e.Event.Tick), blfEvent(&e.Event))
	}

	return nil
}

// blfBody returns the object of a frame.
func blfBody(f *Frame) (kind uint32, b []byte) {
	id := f.ID & can.MaskSFF
	if f.ID&can.EFF != 0 {
		id = f.ID&can.MaskEFF | 1<<31
	}
	channel, flags := uint16(f.Bus)+1, bit(f.Sent)|bit(f.ID&can.RTR != 0)<<7
	switch {
	case f.ID&can.ERR != 0: // before the data: length, flags, code, position, DLC, frame length, identifier
		return framelog.BLFError, pack(nil, channel, [22]byte{}, f.Data[:8])
	case f.FD(): // between: frame length, ns; bits of the arbitration phase
		fd := 1 | f.Flags&can.FlagBRS<<1 | f.Flags&can.FlagESI<<1
		return framelog.BLFFD, pack(nil, channel, flags, can.DLC(f.Len), id, [5]byte{}, fd, f.Len, [5]byte{}, f.Data[:])
	default:
		return framelog.BLFMessage, pack(nil, channel, flags, min(f.Len, 8), id, f.Data[:8])
	}
}

// blfEvent returns a global marker in the group lockstep with the name of the event's kind.
func blfEvent(e *Event) []byte {
	group, name, text := "lockstep", e.Kind.String(), e.Text
	for (len(group)+len(name)+len(text))%4 != 0 {
		text += " "
	}
	return pack(nil,
		uint32(0),                          // type of a commented event
		uint32(0xFFFFFF), uint32(0x3333FF), // foreground; background: red
		[4]byte{}, // 0, not relocatable
		uint32(len(group)), uint32(len(name)), uint32(len(text)), [12]byte{},
		[]byte(group+name+text))
}

// addObject adds an object to the container and writes the container when it is full.
func (x *blfExporter) addObject(kind uint32, at int64, body []byte) error {
	if x.objects.Len()+framelog.BLFObject+len(body) > blfContainerMax {
		if err := x.writeContainer(); err != nil {
			return err
		}
	}

	const nanoseconds = 2 // unit of times
	x.objects.Write(blfBase(kind, framelog.BLFObject, framelog.BLFObject+len(body)))
	x.objects.Write(pack(nil, uint32(nanoseconds), [4]byte{}, x.clock.elapsed(at), body)) // [4]: client, version
	x.count++
	return nil
}

// blfBase returns the first part of an object's header.
func blfBase(kind uint32, header, size int) []byte {
	return pack(nil, []byte(framelog.BLFObjectMagic), uint16(header), uint16(1), uint32(size), kind)
}

// writeContainer writes the objects collected so far.
func (x *blfExporter) writeContainer() error {
	n := x.objects.Len()
	if n == 0 {
		return nil
	}
	x.packed.Reset()
	x.deflate.Reset(&x.packed)
	_, _ = x.objects.WriteTo(x.deflate) // into memory
	_ = x.deflate.Close()
	size := framelog.BLFContainerHead + x.packed.Len()
	b := blfBase(framelog.BLFContainer, 16, size)
	b = pack(b, [8]byte{2}, uint32(n), [4]byte{}, x.packed.Bytes(), make([]byte, size%4)) // 2: deflated
	if _, err := x.to.WriteAt(b, x.at); err != nil {
		return err
	}
	x.at += int64(len(b))
	x.unpackedSize += uint64(framelog.BLFContainerHead + n)
	return nil
}

func (x *blfExporter) Close() error {
	if err := x.writeContainer(); err != nil {
		return err
	}
	return x.writeHeader()
}
