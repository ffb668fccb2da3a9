package record

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/framelog"
)

// readFrames reads a log to its end, one line per frame.
func readFrames(t testing.TB, file []byte) (list []string, err error) {
	t.Helper()
	l, err := framelog.New("log", bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	for {
		f, err := l.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return list, err
		}
		list = append(list, fmt.Sprintf("%s %d %s %v", f.Channel, f.Time, framelog.AppendCandump(nil, &f.Frame), f.Sent))
	}
}

func TestBinaryLogsThatAreCutOffAreNamedByTheirByte(t *testing.T) {
	h := header(1, 2, 1)
	for _, format := range []string{"blf", "mdf4"} {
		_, file := exported(t, format, &h, drive(&h, 3000))
		whole, err := readFrames(t, file)
		if err != nil || len(whole) != 3000 {
			t.Fatalf("%s: %d frames, %v", format, len(whole), err)
		}
		for cut := 1; cut < len(file); cut += len(file) / 50 {
			_, err := readFrames(t, file[:len(file)-cut])
			if err == nil || !strings.HasPrefix(err.Error(), "log:") || !strings.Contains(err.Error(), "byte ") && len(file)-cut > 8 {
				t.Errorf("%s, %d bytes missing: %v", format, cut, err)
			}
		}
	}
}

// A frame in a BLF log has a checksum only through its container.
func TestDamagedContainersOfBLFAreErrors(t *testing.T) {
	h := header(1, 2, 1)
	_, file := exported(t, "blf", &h, drive(&h, 3000))
	for at := blfHeader; at < len(file)-3; at += len(file) / 200 {
		damaged := slices.Clone(file)
		damaged[at] ^= 0x55
		list, err := readFrames(t, damaged)
		if err == nil && at > blfHeader+framelog.BLFContainerHead && len(list) != 3000 {
			t.Errorf("byte %d: %d frames, no error", at, len(list))
		}
	}
}

// blfFile returns a BLF file of raw objects.
func blfFile(objects ...[]byte) []byte {
	file := append(pack(nil, []byte(framelog.BLFMagic), uint32(blfHeader), [8]byte{}), make([]byte, blfHeader-16)...)
	return append(file, bytes.Join(objects, nil)...)
}

// object returns an object with a time in ns.
func object(kind uint32, at uint64, body []byte) []byte {
	b := append(blfBase(kind, framelog.BLFObject, framelog.BLFObject+len(body)), pack(nil, uint32(2), [4]byte{}, at, body)...)
	return append(b, make([]byte, len(b)%4)...)
}

// container returns a container of a part of objects.
func container(objects []byte, deflate bool) []byte {
	method, packed := byte(0), objects
	if deflate {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = z.Write(objects)
		_ = z.Close()
		method, packed = 2, b.Bytes()
	}
	b := blfBase(framelog.BLFContainer, 16, framelog.BLFContainerHead+len(packed))
	b = pack(b, [8]byte{method}, uint32(len(objects)), [4]byte{}, packed)
	return append(b, make([]byte, len(b)%4)...)
}

func TestBLFLogsOfOtherProgramsAreRead(t *testing.T) {
	classic := object(86 /* CAN_MESSAGE2 */, 5e6, pack(nil, uint16(2), byte(1), byte(3), uint32(0x123), [8]byte{1, 2, 3}, [8]byte{}))
	other := object(65, 0, make([]byte, 37)) // an event of another kind, of an odd size
	fd64 := object(101 /* CAN_FD_MESSAGE_64 */, 7e6, pack(nil, byte(3), byte(9), byte(12), byte(0), uint32(0x80000123), uint32(0), uint32(0x7000),
		[16]byte{}, uint16(0), byte(0), byte(0), uint32(0), [12]byte{1, 2, 3}))
	cut := object(101 /* CAN_FD_MESSAGE_64 */, 7e6, pack(nil, byte(3), byte(10), byte(16), byte(0), uint32(0x123), uint32(0), uint32(0x1000),
		[16]byte{}, uint16(0), byte(0), byte(32+40+2), uint32(0), [2]byte{7, 8}, [12]byte{9, 9})) // zeros left out, an extension
	request := object(101 /* CAN_FD_MESSAGE_64 */, 7e6, pack(nil, byte(3), byte(9), byte(12), byte(0), uint32(0x123), [24]byte{}, uint16(0), byte(2), [5]byte{}, [12]byte{}))
	remote := object(framelog.BLFMessage, 8e6, pack(nil, uint16(1), byte(0x80), byte(4), uint32(0x7FF), [8]byte{9}))
	coarse := slices.Clone(remote)
	binary.LittleEndian.PutUint32(coarse[16:], 1) // 10 us
	all := slices.Concat(classic, other, fd64, cut, request, remote)
	want := []string{"2 5000000 123#010203 true", "3 7000000 00000123##3010203000000000000000000 false",
		"3 7000000 123##007080000000000000000000000000000 false", "1 8000000 7FF#R4 false"}
	for name, file := range map[string][]byte{
		"one container":         blfFile(container(all, true)),
		"not deflated":          blfFile(container(all, false)),
		"without a container":   blfFile(all),
		"objects between two":   blfFile(container(all[:61], true), container(all[61:100], true), container(all[100:], false)),
		"a time of 10 us":       blfFile(container(coarse, true)),
		"an empty measurement":  blfFile(),
		"a container of naught": blfFile(container(nil, true)),
	} {
		wanted := want
		switch {
		case strings.Contains(name, "10 us"):
			wanted = []string{"1 80000000000 7FF#R4 false"}
		case len(file) < 200 && !strings.Contains(name, "objects"):
			wanted = nil
		}
		if got, err := readFrames(t, file); err != nil || !slices.Equal(got, wanted) {
			t.Errorf("%s: %v\n%q, want\n%q", name, err, got, wanted)
		}
	}
	for want, file := range map[string][]byte{
		"unit 7 of the time":           blfFile(container(func() []byte { b := slices.Clone(remote); b[16] = 7; return b }(), true)),
		"identifier 0x12345 has more":  blfFile(container(object(framelog.BLFMessage, 0, pack(nil, uint16(1), uint16(0), uint32(0x12345), [8]byte{})), true)),
		"too short for its type":       blfFile(container(object(framelog.BLFFD, 0, make([]byte, 12)), true)),
		"after frame 1: the file is":   blfFile(container(append(slices.Clone(classic), remote[:30]...), true)),
		"there is no object LOBJ":      blfFile(container(append(slices.Clone(classic), "rubbish, and more rubbish"...), true)),
		"a frame of 100000 bytes":      blfFile(container(object(framelog.BLFMessage, 0, make([]byte, 100000-framelog.BLFObject)), true)),
		"packing 9 of a container":     blfFile(func() []byte { b := container(all, true); b[16] = 9; return b }()),
		"the container: zlib: invalid": blfFile(func() []byte { b := container(all, true); b[40] ^= 0xFF; b[len(b)-8] ^= 0xFF; return b }()),
	} {
		if _, err := readFrames(t, file); err == nil || !strings.Contains(err.Error(), want) && !strings.HasPrefix(want, "the container") || !strings.Contains(err.Error(), "byte ") {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// mdfRecords returns records of the group CAN_DataFrame, one each ms, with an identifier before each.
func mdfRecords(n int, id ...byte) (b []byte, want []string) {
	for i := range n {
		f := can.Frame{ID: uint32(i), Len: 8}
		f.Data[0] = byte(i)
		b = pack(append(b, id...), float64(i)/1e3, byte(1), f.ID, byte(0), byte(8), byte(8), f.Data[:], byte(0), byte(0), byte(0), byte(0))
		want = append(want, fmt.Sprintf("1 %d %s false", i*1e6, framelog.AppendCandump(nil, &f)))
	}
	return b, want
}

// mdfWith returns an MDF file whose data group of frames has the data that add writes. With unsorted, the
// group also has records of 3 bytes with the identifier 2, and those of frames have 1.
func mdfWith(t *testing.T, unsorted bool, add func(w *blocks) int64) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "x.mf4"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x := &mdfExporter{h: &Header{}, w: blocks{to: f, at: framelog.MDFHeader}}
	x.writeIdentification(framelog.MDFMagic, 0)
	x.writeHeader()
	list := busChannels("CAN_DataFrame", false)
	size := placeChannels(list, 0)
	var other, width int64
	if unsorted {
		other = x.w.addBlock("CG", make([]int64, 6), uint64(2), uint64(0), [8]byte{}, uint32(3), uint32(0))
		width = 1
	}
	cg := x.w.addBlock("CG", []int64{other, x.w.addChannels(list), 0, 0, 0, 0}, uint64(width), uint64(0), [8]byte{}, size, uint32(0))
	dg := x.w.addBlock("DG", []int64{0, cg, add(&x.w), 0}, [8]byte{byte(width)})
	x.w.link(framelog.MDFHeader, 0, dg)
	file, err := os.ReadFile(f.Name())
	if err := errors.Join(err, x.w.err); err != nil {
		t.Fatal(err)
	}
	return file
}

// packed writes a block DZ, transposed if width > 0.
func packed(w *blocks, data []byte, width int) int64 {
	method, out := byte(0), data
	if width > 0 {
		method, out = 1, nil
		rows := len(data) / width
		for c := range width {
			for r := range rows {
				out = append(out, data[r*width+c])
			}
		}
		out = append(out, data[rows*width:]...)
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write(out)
	_ = z.Close()
	return w.addBlock("DZ", nil, []byte("DT"), method, byte(0), uint32(width), uint64(len(data)), uint64(b.Len()), b.Bytes())
}

func TestMDFDataOfEveryFormAreRead(t *testing.T) {
	sorted, want := mdfRecords(1000)
	size := len(sorted) / 1000
	unsorted := []byte{}
	for i := range 1000 {
		unsorted = append(append(append(unsorted, 1), sorted[i*size:(i+1)*size]...), 2, 9, 9, 9)
	}
	half := len(sorted)/2 + 7 // within a record
	for name, file := range map[string][]byte{
		"DT":         mdfWith(t, false, func(w *blocks) int64 { return w.addBlock("DT", nil, sorted) }),
		"DZ":         mdfWith(t, false, func(w *blocks) int64 { return packed(w, sorted, 0) }),
		"transposed": mdfWith(t, false, func(w *blocks) int64 { return packed(w, sorted, size) }),
		"unsorted":   mdfWith(t, true, func(w *blocks) int64 { return w.addBlock("DT", nil, unsorted) }),
		"unsorted, transposed": mdfWith(t, true, func(w *blocks) int64 {
			return packed(w, unsorted, size)
		}),
		"HL, DL, DZ and DT": mdfWith(t, false, func(w *blocks) int64 {
			a, b := packed(w, sorted[:half], size), w.addBlock("DT", nil, sorted[half:])
			second := w.addBlock("DL", []int64{0, b}, [4]byte{}, uint32(1), uint64(half))
			first := w.addBlock("DL", []int64{second, a}, [4]byte{}, uint32(1), uint64(0))
			return w.addBlock("HL", []int64{first}, [8]byte{})
		}),
	} {
		if got, err := readFrames(t, file); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d frames, %v; want %d", name, len(got), err, len(want))
		}
	}
	var loop int64
	for want, add := range map[string]func(w *blocks) int64{
		"or their links are a loop": func(w *blocks) int64 {
			loop = w.addBlock("DL", []int64{0, 0}, [4]byte{}, uint32(1), uint64(0))
			w.link(loop, 0, loop)
			return loop
		},
		"a link leads out of the file": func(w *blocks) int64 { return 1 << 40 },
		"frame 1000 of the data group": func(w *blocks) int64 { return w.addBlock("DT", nil, sorted[:len(sorted)-5]) },
		"block \"##TX\" where DT":      func(w *blocks) int64 { return w.addText("TX", "hello") },
		"packing 1 of 1099511627776": func(w *blocks) int64 {
			return w.addBlock("DZ", nil, []byte("DT"), byte(1), byte(0), uint32(8), uint64(1<<40), uint64(8), []byte("x\x9c\x03\x00\x00\x00\x00\x01"))
		},
	} {
		file := mdfWith(t, false, add)
		if _, err := readFrames(t, file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ": byte ") {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
