package framelog

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"lockstep/io/can"
)

// Marks of a file, and of an object in it.
const (
	BLFMagic       = "LOGG"
	BLFObjectMagic = "LOBJ"
)

// Types of objects that lockstep writes, too, and the sizes of their heads, bytes.
const (
	BLFMessage       = 1 // CAN_MESSAGE
	BLFContainer     = 10
	BLFError         = 73  // CAN_ERROR_EXT
	BLFFD            = 100 // CAN_FD_MESSAGE
	BLFObject        = 32  // before the body of an object
	BLFContainerHead = 32
)

// Types of objects that lockstep reads but does not write.
const (
	blfError1   = 2   // CAN_ERROR
	blfMessage2 = 86  // CAN_MESSAGE2
	blfFD64     = 101 // CAN_FD_MESSAGE_64
	blfFDError  = 104 // CAN_FD_ERROR_64
)

// blfMaxObject is the largest object of a frame, bytes: CAN_FD_MESSAGE_64 with its extension.
const blfMaxObject = 1 << 10

// blfReader reads the frames of a BLF log. Objects lie in containers, and may begin in one container and
// end in the next, so the content of all containers is one stream. The stream is inflated while it is
// read: the memory does not depend on the size of a container.
type blfReader struct {
	name    string
	in      Input
	at      int64     // offset of the next object of the file, bytes
	current int64     // offset of the object that is read, bytes
	inner   io.Reader // rest of the content of this object; nil: none
	objects *bufio.Reader
	count   int // frames so far
	skipped *int
	object  [blfMaxObject]byte
}

func newBLFReader(name string, in Input, skipped *int) (*blfReader, error) {
	r := &blfReader{name: name, in: in, skipped: skipped}
	head := make([]byte, 32)
	if _, err := in.ReadAt(head, 0); err != nil {
		return nil, r.errorf("the head of the BLF file: %w", cutShort(err))
	}
	size := binary.LittleEndian.Uint64(head[16:])
	if r.at = int64(binary.LittleEndian.Uint32(head[4:])); r.at < int64(len(head)) || r.at > in.Size() {
		return nil, r.errorf("the head of the BLF file has %d bytes, the file %d", r.at, in.Size())
	}
	if size > uint64(in.Size()) {
		return nil, r.errorf("the file is cut off: it has %d bytes, its head says %d", in.Size(), size)
	}
	r.objects = bufio.NewReader(r)
	return r, nil
}

// errorf returns an error with the place in the file.
func (r *blfReader) errorf(format string, values ...any) error {
	return fmt.Errorf("%s: byte %d: framelog: %w", r.name, r.current, fmt.Errorf(format, values...))
}

// cutShort returns the error for an end of the file within an object.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut off")
	}
	return err
}

// Read reads the content of the containers, and of objects outside of containers.
func (r *blfReader) Read(p []byte) (int, error) {
	for {
		if r.inner == nil {
			if err := r.openNext(); err != nil {
				return 0, err
			}
		}
		n, err := r.inner.Read(p)
		switch {
		case err == io.EOF:
			r.inner = nil
		case err != nil:
			return n, r.errorf("the container: %w", cutShort(err))
		}
		if n > 0 {
			return n, nil
		}
	}
}

// openNext opens the next object of the file. Up to 7 bytes of padding precede it.
func (r *blfReader) openNext() error {
	var head [7 + 32]byte
	n, err := r.in.ReadAt(head[:], r.at)
	if err != nil && err != io.EOF {
		return r.errorf("%w", err)
	}
	r.current = r.at
	skip := bytes.Index(head[:n], []byte(BLFObjectMagic))
	switch {
	case n < 8 && len(bytes.Trim(head[:n], "\x00")) == 0:
		return io.EOF
	case skip < 0 || skip > 7:
		return r.errorf("there is no object %s", BLFObjectMagic)
	}
	r.at += int64(skip)
	r.current = r.at
	b := head[skip:n]
	if len(b) < 16 {
		return r.errorf("%w", cutShort(io.EOF))
	}
	size := int64(binary.LittleEndian.Uint32(b[8:]))
	if size < 16 || r.at+size > r.in.Size() {
		return r.errorf("the file is cut off: an object of %d bytes, and %d follow", size, r.in.Size()-r.at)
	}
	r.inner = io.NewSectionReader(r.in, r.at, size)
	r.at += size
	if binary.LittleEndian.Uint32(b[12:]) != BLFContainer {
		return nil
	}
	if len(b) < BLFContainerHead || size < BLFContainerHead {
		return r.errorf("a container of %d bytes", size)
	}
	packed := io.NewSectionReader(r.in, r.current+BLFContainerHead, size-BLFContainerHead)
	switch method := binary.LittleEndian.Uint16(b[16:]); method {
	case 0:
		r.inner = packed
	case 2:
		r.inner, err = zlib.NewReader(bufio.NewReader(packed))
		if err != nil {
			return r.errorf("the container: %w", cutShort(err))
		}
	default:
		return r.errorf("packing %d of a container is not 0 (none) or 2 (zlib)", method)
	}
	return nil
}

// next reads the next frame.
func (r *blfReader) next(f *Frame) error {
	for {
		kind, b, err := r.nextObject()
		if err != nil {
			return err
		}
		*f = Frame{Line: r.count + 1}
		ok, err := parseBLF(kind, b, f)
		if err != nil {
			return r.errorf("frame %d: %w", f.Line, err)
		}
		if ok {
			r.count++
			return nil
		}
		*r.skipped++
	}
}

// nextObject reads the next object of the stream; b is nil for one that is no frame. Up to 7 bytes of
// padding precede it.
func (r *blfReader) nextObject() (kind uint32, b []byte, err error) {
	head, err := r.objects.Peek(7 + 16)
	if err != nil && err != io.EOF {
		return 0, nil, err
	}
	skip := bytes.Index(head, []byte(BLFObjectMagic))
	switch {
	case len(head) < 8 && len(bytes.Trim(head, "\x00")) == 0:
		return 0, nil, io.EOF
	case skip < 0 || skip > 7:
		return 0, nil, r.errorf("there is no object %s after frame %d", BLFObjectMagic, r.count)
	case len(head)-skip < 16:
		return 0, nil, r.errorf("after frame %d: %w", r.count, cutShort(io.EOF))
	}
	size := binary.LittleEndian.Uint32(head[skip+8:])
	kind = binary.LittleEndian.Uint32(head[skip+12:])
	if size < 16 {
		return 0, nil, r.errorf("an object of %d bytes after frame %d", size, r.count)
	}
	_, _ = r.objects.Discard(skip) // of Peek
	if blfFrames[kind] == nil {
		_, err = io.CopyN(io.Discard, r.objects, int64(size))
	} else if size > blfMaxObject {
		return 0, nil, r.errorf("a frame of %d bytes after frame %d", size, r.count)
	} else {
		b = r.object[:size]
		_, err = io.ReadFull(r.objects, b)
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = r.errorf("after frame %d: %w", r.count, cutShort(err))
	}
	return kind, b, err
}

// blfFrames holds the parser of each type of object that is a frame.
var blfFrames = map[uint32]func(b []byte, f *Frame) error{
	BLFMessage: parseBLFClassic, blfMessage2: parseBLFClassic, BLFFD: parseBLFFD, blfFD64: parseBLFFD64,
	BLFError: parseBLFError, blfError1: parseBLFError, blfFDError: parseBLFFDError,
}

// parseBLF reads an object. It returns false if the object is no frame.
func parseBLF(kind uint32, b []byte, f *Frame) (bool, error) {
	if b == nil {
		return false, nil
	}
	head := int(binary.LittleEndian.Uint16(b[4:]))
	if head < BLFObject || head > len(b) {
		return false, fmt.Errorf("a head of %d bytes in an object of %d", head, len(b))
	}
	at := binary.LittleEndian.Uint64(b[24:])
	switch unit := binary.LittleEndian.Uint32(b[16:]); {
	case unit == 1:
		if at *= 1e4; at > 1<<63-1 || at/1e4 != binary.LittleEndian.Uint64(b[24:]) {
			return false, fmt.Errorf("time %d of 10 us is too large", at/1e4)
		}
	case unit != 2:
		return false, fmt.Errorf("unit %d of the time is not 1 (10 us) or 2 (ns)", unit)
	case at > 1<<63-1:
		return false, fmt.Errorf("time %d ns is too large", at)
	}
	const direction, extension = 34, 35 // of CAN_FD_MESSAGE_64; direction 2: a request to send
	f.Time, b = int64(at), b[head:]
	if kind == blfFD64 && len(b) > extension {
		if b[direction] == 2 {
			return false, nil
		}
		if end := int(b[extension]) - head; 40 <= end && end < len(b) {
			b = b[:end]
		}
	}
	return true, blfFrames[kind](b, f)
}

// errShort is the error for an object that is too short for its type.
var errShort = errors.New("the object is too short for its type")

func (f *Frame) setBLF(channel uint16, id uint32, sent, remote bool) error {
	f.Channel, f.Sent = strconv.Itoa(int(channel)), sent
	if remote {
		defer func() { f.ID |= can.RTR }()
	}
	return f.setID(uint64(id&^(1<<31)), id>>31 != 0)
}

// parseBLFClassic reads CAN_MESSAGE: channel, flags, length, identifier, data.
func parseBLFClassic(b []byte, f *Frame) error {
	if len(b) < 8 {
		return errShort
	}
	remote := b[2]>>7 != 0
	f.Len = min(b[3]&15, 8)
	if n := copy(f.Data[:f.Len], b[8:]); !remote && n < int(f.Len) {
		return errShort
	}
	if remote {
		f.Data = [64]byte{}
	}
	return f.setBLF(binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint32(b[4:]), b[2]&1 != 0, remote)
}

// parseBLFFD reads CAN_FD_MESSAGE: channel, flags, length code, identifier, frame length, bit count, flags of
// CAN FD, length, data.
func parseBLFFD(b []byte, f *Frame) error {
	if len(b) < 20 {
		return errShort
	}
	fd := blfFDFrame{channel: binary.LittleEndian.Uint16(b), code: b[3], length: b[14], id: binary.LittleEndian.Uint32(b[4:]),
		sent: b[2]&1 != 0, remote: b[2]>>7 != 0, flags: b[13], data: b[20:]}
	return fd.set(f)
}

// parseBLFFD64 reads CAN_FD_MESSAGE_64: channel, length code, length, count, identifier, frame length, flags,
// bit timing, bit counts, direction, offset of the extension, checksum, data. Loggers leave out zeros at the end of the data.
func parseBLFFD64(b []byte, f *Frame) error {
	if len(b) < 40 {
		return errShort
	}
	flags := binary.LittleEndian.Uint32(b[12:])
	fd := blfFDFrame{channel: uint16(b[0]), code: b[1], length: b[2], id: binary.LittleEndian.Uint32(b[4:]),
		sent: b[34] == 1, remote: flags>>4&1 != 0, flags: byte(flags >> 12 & 7), data: b[40:], cut: true}
	if b[34] > 1 {
		return fmt.Errorf("direction %d is not 0 (received) or 1 (sent)", b[34])
	}
	return fd.set(f)
}

// blfFDFrame is what both objects of CAN FD hold.
type blfFDFrame struct {
	channel      uint16
	id           uint32
	code, length byte
	flags        byte // 1: CAN FD, 2: bit rate switch, 4: error passive
	sent, remote bool
	data         []byte
	cut          bool // data may be shorter than length: zeros are left out
}

func (fd *blfFDFrame) set(f *Frame) error {
	n := min(fd.length, can.Lengths[fd.code&15]) // a sender may pad
	switch {
	case fd.flags&1 == 0:
		f.Len = min(can.Lengths[fd.code&15], 8)
	case fd.length > 64:
		return fmt.Errorf("length %d of a CAN FD frame is not 0 to 64", fd.length)
	default:
		f.setFD(n, fd.flags&2 != 0, fd.flags&4 != 0)
	}
	if fd.remote {
		f.Flags = 0
		f.Len = min(f.Len, 8)
	} else if n = min(n, f.Len); copy(f.Data[:n], fd.data) < int(n) && !fd.cut {
		return errShort
	}
	return f.setBLF(fd.channel, fd.id, fd.sent, fd.remote)
}

// parseBLFError reads an error frame: the channel.
func parseBLFError(b []byte, f *Frame) error {
	if len(b) < 2 {
		return errShort
	}
	f.ID, f.Len, f.Channel = can.ERR, 8, strconv.Itoa(int(binary.LittleEndian.Uint16(b)))
	return nil
}

// parseBLFFDError reads an error frame of CAN FD: the channel.
func parseBLFFDError(b []byte, f *Frame) error {
	if len(b) < 1 {
		return errShort
	}
	f.ID, f.Len, f.Channel = can.ERR, 8, strconv.Itoa(int(b[0]))
	return nil
}
