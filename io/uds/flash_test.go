package uds

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// memory is a unit that is written. It allows blocks of 20 bytes.
type memory struct {
	at, left int
	counter  byte
	data     map[int]byte
	refuse   int // block that is refused
}

func (m *memory) answer(q []byte) []reply {
	switch q[0] {
	case RequestDownload:
		if q[2] != 0x44 || len(q) != 11 {
			return now(0x7F, q[0], 0x31)
		}
		m.at, m.left, m.counter = int(q[3])<<24|int(q[4])<<16|int(q[5])<<8|int(q[6]), int(q[9])<<8|int(q[10]), 0
		return now(0x74, 0x20, 0, 20)
	case TransferData:
		m.counter++
		m.refuse--
		if q[1] != m.counter || len(q) > 20 || m.refuse == 0 {
			return now(0x7F, q[0], 0x73)
		}
		for _, b := range q[2:] {
			m.data[m.at] = b
			m.at, m.left = m.at+1, m.left-1
		}
		return now(0x76, q[1])
	case TransferExit:
		if m.left != 0 {
			return now(0x7F, q[0], 0x24)
		}
		return now(0x77)
	}
	return nil
}

// 5000 bytes in blocks of 18 wrap the block counter.
func TestSegmentIsWrittenInBlocksOfTheUnit(t *testing.T) {
	m := &memory{data: map[int]byte{}}
	r := newRig(t, m.answer)
	data := make([]byte, 5000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	last := 0
	err := r.run(func(t *Tester) error { return t.Write(Download{}, Segment{0x80010000, data}, func(n int) { last = n }) })
	for i, b := range data {
		if m.data[0x80010000+i] != b {
			t.Fatalf("byte %d is 0x%02X, want 0x%02X", i, m.data[0x80010000+i], b)
		}
	}
	if err != nil || last != 5000 || len(m.data) != 5000 {
		t.Errorf("%v, progress %d of 5000, %d bytes", err, last, len(m.data))
	}
	m.refuse = 3
	err = r.run(func(t *Tester) error { return t.Write(Download{}, Segment{0x80010000, data}, nil) })
	if want := "block 3 at 0x80010024: the unit refuses 0x36 TransferData: negative response 0x73 wrongBlockSequenceCounter"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	err = r.run(func(t *Tester) error { return t.Write(Download{AddressBytes: 2}, Segment{0x80010000, data}, nil) })
	if err == nil || err.Error() != "address 0x80010000 does not fit 2 bytes" {
		t.Error(err)
	}
}

func TestWrongLengthFormatsOfADownloadAreRefused(t *testing.T) {
	for want, answer := range map[string][]byte{"want 2 and the 4": {0x74, 0x40, 1, 2}, "blocks of 2 bytes": {0x74, 0x10, 2}, "want 2 and the 0": {0x74, 0x00, 1}} {
		r := newRig(t, func([]byte) []reply { return now(answer...) })
		err := r.run(func(t *Tester) error { return t.Write(Download{}, Segment{0, []byte{1}}, nil) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The S-records are an example of Motorola's description, the Intel HEX records one of Intel's.
func TestImagesAreReadAsSegments(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Segment
	}{
		"S1": {"S00F000068656C6C6F202020202000003C\nS11F00007C0802A6900100049421FFF07C6C1B787C8C23783C6000003863000026\nS11F001C4BFFFFE5398000007D83637880010014382100107C0803A64E800020E9\nS111003848656C6C6F20776F726C642E0A0042\nS5030003F9\nS9030000FC\n",
			[]Segment{{0, unhex("7C0802A6900100049421FFF07C6C1B787C8C23783C600000386300004BFFFFE5398000007D83637880010014382100107C0803A64E80002048656C6C6F20776F726C642E0A00")}}},
		"S2 and S3, in another order": {record("S3", "80000010AA") + record("S2", "0200000102") + "S70500000000FA\n", []Segment{{0x020000, []byte{1, 2}}, {0x80000010, []byte{0xAA}}}},
		"Intel HEX":                   {":10010000214601360121470136007EFE09D2190140\r\n:100110002146017E17C20001FF5F16002148011928\r\n:020000040800F2\r\n:0100000055AA\r\n:00000001FF\r\n", []Segment{{0x0100, unhex("214601360121470136007EFE09D219012146017E17C20001FF5F160021480119")}, {0x08000000, []byte{0x55}}}},
		"Intel HEX with segments":     {":020000021000EC\n:0100000055AA\n:00000001FF", []Segment{{0x10000, []byte{0x55}}}},
	} {
		got, err := ReadImage("f", strings.NewReader(c.text))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %X, %v", name, got, err)
		}
	}
}

func unhex(s string) []byte {
	b, _ := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	return b
}

// record returns an S-record of an address and data.
func record(kind, content string) string {
	b := append([]byte{byte(len(unhex(content)) + 1)}, unhex(content)...)
	return fmt.Sprintf("%s%X%02X\n", kind, b, ^sum(b))
}

func TestWrongImagesAreRefusedWithALine(t *testing.T) {
	for want, text := range map[string]string{
		"f:1: the checksum is 0x00, want 0xFC":                 "S903000000\n",
		"f:1: the line begins with 'x'":                        "x",
		"f:1: type S4 is not one of":                           "S40300000000",
		"f:1: the S-record has 3 bytes after its count of 4":   "S904000000",
		"f:1: the record is not of pairs":                      "S1zz",
		"f:2: a record after the end record":                   "S9030000FC\nS9030000FC",
		"f: the file has no data":                              "",
		"f: the end record is missing":                         record("S1", "000001"),
		"f: two records have data at 0x00000001":               record("S1", "00000102") + record("S1", "000103") + "S9030000FC",
		"f:1: the record has 4 bytes; its length does not fit": ":00000001",
		"f:1: an address record has 1 bytes":                   ":0100000408F3",
		"f:1: record type 9 is not known":                      ":00000009F7",
		"f:1: the checksum is 0x00, want 0xFF":                 ":0000000100",
		"f:1: data at 0xFFFFFFFF go beyond 32 bits":            record("S3", "FFFFFFFF0102"),
		"f:1: the S-record has no type":                        "S",
		"f:1: the S-record has 0 bytes after its count of 0":   "S1",
		"f:1: bufio.Scanner: token too long":                   strings.Repeat("S", 1<<17),
	} {
		if _, err := ReadImage("f", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzImage: what is read has rising addresses without overlap; written again as S3 records it reads the same.
func FuzzImage(f *testing.F) {
	f.Add("S00F000068656C6C6F202020202000003C\nS111003848656C6C6F20776F726C642E0A0042\nS9030000FC\n")
	f.Add(":020000040800F2\n:0100000055AA\n:00000001FF")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadImage("f", strings.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		end, again := uint64(0), ""
		for i, s := range list {
			if i > 0 && uint64(s.Address) <= end || len(s.Data) == 0 {
				t.Fatalf("%X", list)
			}
			end = uint64(s.Address) + uint64(len(s.Data))
			for n := 0; n < len(s.Data); n += 32 {
				again += record("S3", fmt.Sprintf("%08X%X", int(s.Address)+n, s.Data[n:min(n+32, len(s.Data))]))
			}
		}
		back, err := ReadImage("f", strings.NewReader(again+"S70500000000FA"))
		if err != nil || !reflect.DeepEqual(back, list) {
			t.Errorf("%v", err)
		}
	})
}

// Segments in random order and size are joined where they touch.
func TestImageOfRandomRecordsIsJoined(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	want := make([]byte, 3000)
	for i := range want {
		want[i] = byte(random.Uint32())
	}
	var lines []string
	for n := 0; n < len(want); {
		m := min(1+random.IntN(60), len(want)-n)
		lines = append(lines, record("S2", fmt.Sprintf("%06X%X", 0x010000+n, want[n:n+m])))
		n += m
	}
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	got, err := ReadImage("f", strings.NewReader(strings.Join(lines, "")+"S9030000FC"))
	if err != nil || len(got) != 1 || got[0].Address != 0x010000 || !bytes.Equal(got[0].Data, want) {
		t.Errorf("%d segments, %v", len(got), err)
	}
}
