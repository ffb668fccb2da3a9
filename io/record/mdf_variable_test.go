package record

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/framelog"
)

var mdfFolder = flag.String("mdf", "", "folder that TestMDFDataOfVariableLengthAreRead writes its files into")

// variableForms are the places of data of variable length: in records between those of the frames, or
// in one block or a list of blocks of their own.
var variableForms = []string{"before", "behind", "far", "SD", "DL", "DZ"}

// mdfVariable returns an MDF file in whose records the data are references, as loggers write it, and
// what is in it. Its first times are before the start, as python-can converts a log.
func mdfVariable(t *testing.T, folder, form string, change func(frame int, data []byte) []byte) (path string, want []string) {
	t.Helper()
	path = filepath.Join(folder, "variable-"+form+".mf4")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x := &mdfExporter{h: &Header{}, w: blocks{to: f, at: framelog.MDFHeader}}
	x.writeIdentification(framelog.MDFMagic, 0)
	x.writeHeader()
	w := &x.w

	records, values, mixed, held := []byte{}, []byte{}, []byte{}, []byte{}
	for i := range 1000 {
		fr := can.Frame{ID: uint32(i), Len: uint8(i % 9)}
		if i%3 == 0 {
			fr.Len, fr.Flags = can.Lengths[i%16], can.FlagFDF
		}
		for j := range fr.Len {
			fr.Data[j] = byte(i + int(j))
		}
		want = append(want, fmt.Sprintf("1 %d %s false", (i-500)*1e6, framelog.AppendCandump(nil, &fr)))
		record := pack(nil, float64(i-500)/1e3, byte(1), fr.ID, can.DLC(fr.Len), fr.Len, bit(fr.FD()), uint64(len(values)))
		data := fr.Data[:fr.Len]
		if change != nil {
			data = change(i, data)
		}
		value := pack(nil, uint32(len(data)), data)
		records, values = append(records, record...), append(values, value...)
		value = append([]byte{2}, value...)
		switch record = append([]byte{1}, record...); {
		case form == "before":
			mixed = append(append(mixed, value...), record...)
		case form == "far":
			if mixed, held = append(mixed, record...), append(held, value...); i%500 == 499 {
				mixed, held = append(mixed, held...), nil
			}
		default:
			mixed = append(append(mixed, record...), value...)
		}
	}

	const bus, size = 0x400, 8 + 1 + 4 + 1 + 1 + 1 + 8
	var group, others, data int64
	sorted := slices.Contains([]string{"SD", "DL", "DZ"}, form)
	half := len(values) / 2
	switch form {
	case "SD":
		others = w.addBlock("SD", nil, values)
	case "DZ":
		others = packed(w, values, 0)
		w.write([]byte("SD"), others+24) // the type of the block that is packed
	case "DL":
		a, b := w.addBlock("SD", nil, values[:half]), w.addBlock("SD", nil, values[half:])
		others = w.addBlock("DL", []int64{0, a, b}, [4]byte{}, uint32(2), uint64(0), uint64(half))
	default:
		others = w.addBlock("CG", make([]int64, 6), uint64(2), uint64(1000), uint16(1), [6]byte{}, uint64(len(values)-4000))
		group = others
	}
	var part, at int64
	at = size
	for _, p := range slices.Backward([]struct {
		name string
		bits uint32
	}{{"BusChannel", 8}, {"ID", 32}, {"DLC", 8}, {"DataLength", 8}, {"EDL", 8}, {"DataBytes", 64}}) {
		at -= int64(p.bits / 8)
		kind, form, from := byte(0), byte(mdfUint), int64(0)
		if p.name == "DataBytes" {
			kind, form, from = 1, mdfArray, others
		}
		part = w.addBlock("CN", []int64{part, 0, w.addText("TX", "CAN_DataFrame."+p.name), 0, 0, from, 0, 0},
			kind, byte(0), form, byte(0), uint32(at), p.bits, uint32(bus), uint32(0), [4]byte{}, [6]float64{})
	}
	whole := w.addBlock("CN", []int64{0, part, w.addText("TX", "CAN_DataFrame"), 0, 0, 0, 0, 0},
		[2]byte{}, byte(mdfArray), byte(0), uint32(8), uint32(8*(size-8)), uint32(bus), uint32(0), [4]byte{}, [6]float64{})
	master := w.addBlock("CN", []int64{whole, 0, w.addText("TX", "time"), 0, 0, 0, w.addText("TX", "s"), 0},
		[2]byte{2, 1}, byte(mdfFloat), byte(0), uint32(0), uint32(64), uint32(0), uint32(0), [4]byte{}, [6]float64{})
	si := w.addBlock("SI", []int64{w.addText("TX", "CAN"), w.addText("TX", "CAN"), 0}, [8]byte{2, 2})
	id, idSize := uint64(1), byte(1)
	if data = w.addBlock("DT", nil, mixed); sorted {
		data = w.addBlock("DT", nil, records)
		id, idSize = 0, 0
	}
	cg := w.addBlock("CG", []int64{group, master, 0, si, 0, 0}, id, uint64(1000), uint16(mdfBus), uint16('.'), uint32(0), uint32(size), uint32(0))
	w.link(framelog.MDFHeader, 0, w.addBlock("DG", []int64{0, cg, data, 0}, [8]byte{idSize}))
	if w.err != nil {
		t.Fatal(w.err)
	}
	return path, want
}

func TestMDFDataOfVariableLengthAreRead(t *testing.T) {
	for _, form := range variableForms {
		path, want := mdfVariable(t, cmp.Or(*mdfFolder, t.TempDir()), form, nil)
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readFrames(t, file); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d frames, %v; want %d", form, len(got), err, len(want))
		}
	}
}

func TestDamagedDataOfVariableLengthAreErrors(t *testing.T) {
	for _, form := range variableForms {
		for want, change := range map[string]func(int, []byte) []byte{
			"frame 501 of the data group: 3 bytes of data where the length says 5": func(i int, data []byte) []byte {
				return data[:len(data)-2*int(bit(i == 500))]
			},
			"data of 70 bytes": func(i int, data []byte) []byte {
				return append(data, make([]byte, 70*int(bit(i == 500))-len(data)*int(bit(i == 500)))...)
			},
		} {
			path, _ := mdfVariable(t, t.TempDir(), form, change)
			file, err := os.ReadFile(path)
			_, failure := readFrames(t, file)
			if err != nil || failure == nil || !strings.Contains(failure.Error(), want) || !strings.Contains(failure.Error(), ": byte ") {
				t.Errorf("%s: %v; want %q", form, errors.Join(err, failure), want)
			}
		}
	}
}
