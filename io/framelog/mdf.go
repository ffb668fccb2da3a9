package framelog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"lockstep/io/can"
)

// mdfReader reads the frames of the bus logging of an MDF4 file: the channels CAN_DataFrame,
// CAN_RemoteFrame and CAN_ErrorFrame of all groups, merged in the order of time. It reads sorted and
// unsorted data, also deflated and transposed, and data of variable length (VLSD). It reads each group as a
// stream: of transposed data it holds one block.
type mdfReader struct {
	mdfInput
	streams []*mdfStream
	count   int // frames so far
}

// Beginnings of a finished and an unfinished file.
const (
	MDFMagic      = "MDF     "
	MDFUnfinished = "UnFinMF "
)

// MDFHeader is the offset of the header block, behind the identification, bytes.
const MDFHeader = 64

// Limits of a file.
const (
	mdfMaxBlocks  = 1 << 18  // blocks that describe the file, and blocks of data
	mdfMaxMeta    = 1 << 18  // size of the links and of the content of a block, bytes
	mdfMaxDepth   = 8        // depth of members of members
	mdfMaxStreams = 256      // data groups with frames
	mdfMaxRecord  = 64 << 10 // size of a record, bytes
	mdfMaxPacked  = 64 << 20 // size of a transposed block, bytes; the standard proposes 4 MiB
)

// mdfInput is a file and its blocks.
type mdfInput struct {
	name       string
	in         Input
	unfinished uint16 // flags of an unfinished file
	blocks     int    // blocks read so far, which bounds loops of links
}

// mdfNode is a block: links to other blocks, and data.
type mdfNode struct {
	at    int64 // offset in the file, bytes
	size  int64 // length with head and links, bytes
	id    string
	links []int64
	data  []byte // up to mdfMaxMeta
}

// mdfDT is the flag of an unfinished file whose last DT block has no length yet.
const mdfDT = 4

func newMDFReader(name string, in Input) (*mdfReader, error) {
	r := &mdfReader{mdfInput: mdfInput{name: name, in: in}}
	hd, err := r.head()
	if err != nil {
		return nil, err
	}
	for at := hd.links[0]; at != 0; {
		dg, err := r.block(at, "DG", 3)
		if err != nil {
			return nil, err
		}
		if err := r.addGroup(&dg); err != nil {
			return nil, err
		}
		at = dg.links[0]
	}
	r.blocks = 0 // the blocks of data are counted anew
	if len(r.streams) == 0 {
		return nil, fmt.Errorf("%s: framelog: the MDF file has no frames: no channel is CAN_DataFrame or CAN_RemoteFrame", name)
	}
	return r, nil
}

// head reads the identification and returns the header block.
func (m *mdfInput) head() (hd mdfNode, err error) {
	head := make([]byte, 64)
	if _, err := m.in.ReadAt(head, 0); err != nil {
		return hd, m.errorf(0, "the head of the MDF file: %w", cutShort(err))
	}
	if version := binary.LittleEndian.Uint16(head[28:]); version < 400 {
		return hd, m.errorf(28, "MDF version %d.%02d: convert the file to MDF 4", version/100, version%100)
	}
	if string(head[:8]) == MDFUnfinished {
		m.unfinished = binary.LittleEndian.Uint16(head[60:])
	}
	return m.block(MDFHeader, "HD", 1)
}

// errorf returns an error with the place in the file.
func (m *mdfInput) errorf(at int64, format string, values ...any) error {
	return fmt.Errorf("%s: byte %d: framelog: %w", m.name, at, fmt.Errorf(format, values...))
}

// block reads a block, which must have one of the identifiers ids, two letters each, and some links.
func (m *mdfInput) block(at int64, ids string, links int) (b mdfNode, err error) {
	var head [24]byte
	if m.blocks++; m.blocks > mdfMaxBlocks {
		return b, m.errorf(at, "more than %d blocks describe the file, or their links are a loop", mdfMaxBlocks)
	}
	if at < MDFHeader || at > m.in.Size() {
		return b, m.errorf(at, "a link leads out of the file, which has %d bytes: the file is cut off or damaged", m.in.Size())
	}
	if _, err := m.in.ReadAt(head[:], at); err != nil {
		return b, m.errorf(at, "%w", cutShort(err))
	}
	size, n := binary.LittleEndian.Uint64(head[8:]), binary.LittleEndian.Uint64(head[16:])
	b = mdfNode{at: at, id: string(head[2:4]), size: int64(size)}
	switch {
	case string(head[:2]) != "##" || !strings.Contains(ids, b.id):
		return b, m.errorf(at, "block %.4q where %s is expected", head[:4], strings.ReplaceAll(ids, " ", " or "))
	case size < 24 || size > uint64(m.in.Size()-at):
		return b, m.errorf(at, "the file is cut off: block %s has %d bytes, and %d follow", b.id, size, m.in.Size()-at)
	case n > (size-24)/8 || n < uint64(links):
		return b, m.errorf(at, "block %s has %d links", b.id, n)
	}
	most := int64(mdfMaxMeta)
	if b.id == "DT" || b.id == "SD" || b.id == "DZ" {
		most = 24 // the head of DZ
	}
	rest := make([]byte, min(b.size-24, most))
	if _, err := m.in.ReadAt(rest, at+24); err != nil {
		return b, m.errorf(at, "%w", cutShort(err))
	}
	if n > uint64(len(rest)/8) {
		return b, m.errorf(at, "block %s has %d links, at most %d are possible", b.id, n, mdfMaxMeta/8)
	}
	for i := range n {
		b.links = append(b.links, int64(binary.LittleEndian.Uint64(rest[8*i:])))
	}
	b.data = rest[8*n:]
	return b, nil
}

// text reads a text block; "" if there is none.
func (m *mdfInput) text(at int64) (string, error) {
	if at == 0 {
		return "", nil
	}
	b, err := m.block(at, "TX MD", 0)
	text, _, _ := bytes.Cut(b.data, []byte{0})
	return string(text), err
}

// mdfFrame is a channel group: the form of a record.
type mdfFrame struct {
	size     int    // size of a record, bytes
	variable bool   // a record is a length and so many bytes
	kind     string // DataFrame, RemoteFrame or ErrorFrame; "" if the records are no frames
	time     mdfField
	parts    map[string]mdfField // members of the frame, by the name after the point
	values   *mdfValues          // variable: the records; a frame: its data; nil: none, or in the record
}

// mdfField is a channel in a framelog: value = offset + factor·raw.
type mdfField struct {
	kind           byte // data type: 0, 1 unsigned; 2, 3 signed; 4, 5 float; odd numbers are big endian
	at, shift      int  // place, bytes and bits
	bits           int
	offset, factor float64
	values         int64 // offset of the block with values of variable length, bytes; 0: the value is in the record
}

// addGroup adds a data group, unless it has no frames.
func (r *mdfReader) addGroup(dg *mdfNode) error {
	if len(dg.data) < 1 {
		return r.errorf(dg.at, "block DG is too short")
	}
	s := &mdfStream{file: &r.mdfInput, idSize: int(dg.data[0]), records: map[uint64]*mdfFrame{}, at: dg.at}
	if s.idSize > 8 || s.idSize&(s.idSize-1) != 0 {
		return r.errorf(dg.at, "a record identifier of %d bytes is not 0, 1, 2, 4 or 8 bytes", s.idSize)
	}
	frames, groups := false, map[int64]*mdfFrame{}
	for at := dg.links[1]; at != 0; {
		cg, err := r.block(at, "CG", 2)
		if err != nil {
			return err
		}
		if len(cg.data) < 32 {
			return r.errorf(at, "block CG is too short")
		}
		record, err := r.readRecord(&cg)
		if err != nil {
			return err
		}
		id := binary.LittleEndian.Uint64(cg.data)
		if s.idSize == 0 {
			id = 0
		}
		s.records[id], groups[at] = record, record
		frames = frames || record.kind != ""
		at = cg.links[0]
	}

	switch {
	case !frames:
		return nil
	case len(groups) > 1 && s.idSize == 0:
		return r.errorf(dg.at, "several channel groups without record identifiers")
	case len(r.streams) == mdfMaxStreams:
		return r.errorf(dg.at, "more than %d data groups with frames", mdfMaxStreams)
	}
	for _, g := range groups {
		at := g.parts["DataBytes"].values
		if at == 0 {
			continue
		}
		from := groups[at] // records of variable length between those of the frames, or blocks
		if from == nil {
			from = &mdfFrame{values: &mdfValues{in: r.stream(at)}}
		} else if !from.variable {
			return r.errorf(at, "the data of the frames are in a group whose records have no variable length")
		} else if from.values == nil {
			from.values = &mdfValues{}
		}
		g.values = from.values
	}
	r.streams = append(r.streams, s)
	s.in = r.stream(dg.links[2])
	return nil
}

// readRecord reads a channel group and its channels.
func (r *mdfReader) readRecord(cg *mdfNode) (*mdfFrame, error) {
	flags := binary.LittleEndian.Uint16(cg.data[16:])
	size := uint64(binary.LittleEndian.Uint32(cg.data[24:])) + uint64(binary.LittleEndian.Uint32(cg.data[28:]))
	g := &mdfFrame{size: int(size), variable: flags&1 != 0, parts: map[string]mdfField{}}
	if !g.variable {
		if err := r.addChannels(g, cg.links[1], 0); err != nil {
			return nil, err
		}
	}
	if g.kind == "" {
		return g, nil
	}

	if size == 0 || size > mdfMaxRecord {
		return nil, r.errorf(cg.at, "records of %d bytes; at most %d are possible", size, mdfMaxRecord)
	}
	if g.time.bits < 1 || g.time.bits > 64 {
		return nil, r.errorf(cg.at, "the group %s has no channel of time of 1 to 64 bits", g.kind)
	}
	need := []string{"ID"}
	if g.kind == "DataFrame" {
		need = append(need, "DataBytes")
	}
	for _, name := range need {
		if _, ok := g.parts[name]; !ok && g.kind != "ErrorFrame" {
			return nil, r.errorf(cg.at, "the group has no channel CAN_%s.%s", g.kind, name)
		}
	}
	return g, nil
}

// addChannels adds a list of channels, with their members, to a record.
func (r *mdfReader) addChannels(g *mdfFrame, at int64, depth int) error {
	if depth > mdfMaxDepth {
		return r.errorf(at, "channels are members of members, deeper than %d", mdfMaxDepth)
	}
	for at != 0 {
		cn, err := r.block(at, "CN CA", 1)
		if err != nil {
			return err
		}
		if cn.id == "CA" {
			return nil // an array has no members of a frame
		}
		if len(cn.links) < 8 || len(cn.data) < 16 {
			return r.errorf(at, "block CN is too short")
		}
		field, err := r.field(g.size, &cn)
		if err != nil {
			return err
		}
		name, err := r.text(cn.links[2])
		if err != nil {
			return err
		}
		if cn.data[0] == 2 && cn.data[1] == 1 {
			g.time = field
		}
		if whole, part, _ := strings.Cut(strings.TrimPrefix(name, "CAN_"), "."); strings.HasPrefix(name, "CAN_") &&
			(whole == "DataFrame" || whole == "RemoteFrame" || whole == "ErrorFrame") {
			g.kind = whole
			if part != "" {
				g.parts[part] = field
			}
		}
		if err := r.addChannels(g, cn.links[1], depth+1); err != nil {
			return err
		}
		at = cn.links[0]
	}
	return nil
}

// field returns the place and the conversion of a channel in a record of size bytes.
func (r *mdfInput) field(size int, cn *mdfNode) (mdfField, error) {
	d := cn.data
	f := mdfField{
		kind: d[2], shift: int(d[3] & 7), at: int(binary.LittleEndian.Uint32(d[4:])), bits: int(binary.LittleEndian.Uint32(d[8:])),
		factor: 1,
	}
	if variable := d[0] == 1; variable {
		f.values = cn.links[5]
	}
	if end := (f.shift + f.bits + 7) / 8; f.at < 0 || f.bits < 0 || f.at+end > size {
		return f, r.errorf(cn.at, "the channel has %d bits at byte %d of a record of %d bytes", f.bits, f.at, size)
	}
	if cn.links[4] == 0 {
		return f, nil
	}
	cc, err := r.block(cn.links[4], "CC", 0)
	if err != nil {
		return f, err
	}
	const linear, values = 1, 24
	if len(cc.data) >= values+16 && cc.data[0] == linear {
		f.offset = math.Float64frombits(binary.LittleEndian.Uint64(cc.data[values:]))
		f.factor = math.Float64frombits(binary.LittleEndian.Uint64(cc.data[values+8:]))
	}
	return f, nil
}

// raw returns the unsigned integer of a field of at most 64 bits, 0 of a missing field.
func (f *mdfField) raw(record []byte) uint64 {
	n := (f.shift + f.bits + 7) / 8
	if n == 0 || n > 8 {
		return 0
	}
	var v uint64
	for i, b := range record[f.at : f.at+n] {
		if bigEndian := f.kind == 1 || f.kind == 3 || f.kind == 5; bigEndian {
			i = n - 1 - i
		}
		v |= uint64(b) << (8 * i)
	}
	return v >> f.shift & (1<<f.bits - 1)
}

// value returns the value of a field with its conversion.
func (f *mdfField) value(record []byte) float64 {
	raw := f.raw(record)
	v := float64(raw)
	switch {
	case f.kind >= 4 && f.bits == 64:
		v = math.Float64frombits(raw)
	case f.kind >= 4:
		v = float64(math.Float32frombits(uint32(raw)))
	case f.kind >= 2:
		v = float64(int64(raw<<(64-f.bits)) >> (64 - f.bits))
	}
	return f.offset + float64(f.factor*v)
}

// next reads the next frame of all groups.
func (r *mdfReader) next(f *Frame) error {
	var first *mdfStream
	for _, s := range r.streams {
		if err := s.fetch(); err != nil {
			return err
		}
		if len(s.ahead) > 0 && (first == nil || s.ahead[0].Time < first.ahead[0].Time) {
			first = s
		}
	}
	if first == nil {
		return io.EOF
	}
	r.count++
	*f, first.ahead = first.ahead[0].Frame, first.ahead[1:]
	f.Line = r.count
	return nil
}

// mdfStream reads the records of a data group.
type mdfStream struct {
	file    *mdfInput
	at      int64 // offset of its DG block, bytes
	idSize  int   // size of the identifier before a record, bytes
	records map[uint64]*mdfFrame
	in      *bufio.Reader
	count   int
	ahead   []mdfWaiting // next frames: the first one is whole after fetch
	ended   bool
	buffer  []byte
}

// mdfWaiting is a frame whose data may follow in a later record.
type mdfWaiting struct {
	Frame
	values *mdfValues // data of the frame; nil: the frame is whole
	at     uint64     // offset in values, bytes
}

// fetch reads until the first of the frames ahead is whole, or to the end.
func (s *mdfStream) fetch() error {
	for {
		if len(s.ahead) > 0 {
			whole, err := s.ahead[0].complete()
			if err == nil && !whole && (s.ended || len(s.ahead) == mdfWindow) {
				err = fmt.Errorf("its data are not in the next %d records", len(s.ahead))
			}
			if err != nil {
				return s.file.errorf(s.at, "frame %d of the data group: %w", s.count-len(s.ahead)+1, err)
			}
			if whole {
				return nil
			}
		}
		if s.ended {
			return nil
		}
		record, err := s.nextRecord()
		switch {
		case err == io.EOF:
			s.ended = true
		case err != nil:
			return err
		case record.kind != "":
			s.count++
			f := mdfWaiting{values: record.values}
			if err := record.frame(s.buffer, &f); err != nil {
				return s.file.errorf(s.at, "frame %d of the data group: %w", s.count, err)
			}
			s.ahead = append(s.ahead, f)
		}
	}
}

// nextRecord reads a record; buffer holds the record of a frame. The error is io.EOF behind the last one.
func (s *mdfStream) nextRecord() (*mdfFrame, error) {
	var id [8]byte
	if _, err := io.ReadFull(s.in, id[:s.idSize]); err != nil {
		return nil, s.cut(err)
	}
	record := s.records[binary.LittleEndian.Uint64(id[:])]
	if record == nil {
		return nil, s.file.errorf(s.at, "record identifier %d after frame %d of the data group belongs to no channel group",
			binary.LittleEndian.Uint64(id[:]), s.count)
	}

	size := int64(record.size)
	if record.variable {
		var n [4]byte
		if _, err := io.ReadFull(s.in, n[:]); err != nil {
			return nil, s.cutInside(err)
		}
		size = int64(binary.LittleEndian.Uint32(n[:]))
	}
	if record.variable && record.values != nil {
		if err := record.values.read(s.in, size); err != nil {
			return nil, s.file.errorf(s.at, "behind frame %d of the data group: %w", s.count, cutShort(err))
		}
		return record, nil
	}
	if record.kind == "" {
		if _, err := io.CopyN(io.Discard, s.in, size); err != nil {
			return nil, s.cutInside(err)
		}
		return record, nil
	}
	if len(s.buffer) < record.size {
		s.buffer = make([]byte, record.size)
	}
	n, err := io.ReadFull(s.in, s.buffer[:record.size])
	if n == 0 && s.idSize == 0 {
		return nil, s.cut(err)
	}
	return record, s.cutInside(err)
}

// cut leaves io.EOF as it is, the end between two records.
func (s *mdfStream) cut(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return s.cutInside(err)
}

// cutInside returns the error of an end within a record.
func (s *mdfStream) cutInside(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return s.file.errorf(s.at, "frame %d of the data group: %w", s.count+1, cutShort(err))
	}
	return err
}

// frame reads a frame from its record.
func (g *mdfFrame) frame(record []byte, f *mdfWaiting) error {
	at := g.time.value(record) * 1e9
	if !(math.Abs(at) < 1<<62) { // python-can counts from when it writes the file: less than 0 if it converts
		return fmt.Errorf("time %g s is not within 146 years", at/1e9)
	}
	part := func(name string) uint64 {
		field := g.parts[name]
		return field.raw(record)
	}
	f.Time, f.Channel = int64(math.Round(at)), strconv.FormatUint(part("BusChannel"), 10)
	if g.kind == "ErrorFrame" {
		f.ID, f.Len, f.values = can.ERR, 8, nil
		return nil
	}
	id := part("ID")
	if err := f.setID(id&^(1<<31), id>>31&1 != 0 || part("IDE") != 0); err != nil {
		return err
	}

	f.Sent = part("Dir") == 1
	code, fd := part("DLC"), part("EDL") != 0
	_, hasLength := g.parts["DataLength"]
	n := uint64(min(can.Lengths[code&15], 64))
	if hasLength && g.kind == "DataFrame" {
		n = part("DataLength")
	}
	if !fd && g.kind == "RemoteFrame" {
		n = min(n, 8)
	}
	data := g.parts["DataBytes"]
	fits := g.kind == "RemoteFrame" || data.values != 0 || n <= uint64(data.bits/8)
	if code > 15 || n > 64 || !fd && n > 8 || !fits {
		return fmt.Errorf("length code %d and length %d: they go to 15 and to 8, of CAN FD to 64", code, n)
	}
	if f.Len = uint8(n); g.kind == "RemoteFrame" {
		f.ID, f.values = f.ID|can.RTR, nil
		return nil
	}
	if f.values == nil {
		copy(f.Data[:n], record[data.at:])
	} else {
		f.at = data.raw(record)
	}
	if fd {
		f.setFD(f.Len, part("BRS") != 0, part("ESI") != 0)
	}
	return nil
}
