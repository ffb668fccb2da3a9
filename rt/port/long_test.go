package port_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/model/plants"
	"lockstep/rt/bench"
)

// The additions to the truck's database: pressures for C1 to all and for C2 to the gearbox, 0x80; speeds
// to all and to the transmission, 3.
const longMessages = `
BO_ 2566852862 LongPressure: 20 TCU
 SG_ long_C1 : 128|8@1+ (0.1,0) [0|25] "bar" Gearbox
BO_ 2565832958 LongCommand: 100 TCU
 SG_ long_C2 : 720|16@1+ (0.001,0) [0|25] "bar" Gearbox
 SG_ other : 736|8@1+ (1,0) [0|250] "" Gearbox
BO_ 2566852992 LongSpeeds: 23 Gearbox
 SG_ long_out : 160|16@1+ (0.125,0) [0|8031.875] "rpm" TCU
BO_ 2565800832 LongAnswer: 150 Gearbox
 SG_ long_in : 1100|16@1+ (0.125,0) [0|8031.875] "rpm" TCU
BA_ "VFrameFormat" BO_ 2566852862 3;
BA_ "VFrameFormat" BO_ 2565832958 3;
BA_ "VFrameFormat" BO_ 2566852992 3;
BA_ "VFrameFormat" BO_ 2565800832 3;
`

// longBench returns the truck bench with the long messages.
func longBench(t *testing.T) *bench.Bench {
	return extendedBench(t, longMessages, longReplacements()...)
}

// longReplacements are those of longBench for extendedBench.
func longReplacements() []string {
	return []string{"time: 200 ms", "time: 1 s",
		"ClutchPressures.pressure_C1 ->", "LongPressure.long_C1 ->", "ClutchPressures.pressure_C2 ->", "LongCommand.long_C2 ->",
		"HRW: {cycle: 20 ms}", "HRW: {cycle: 20 ms}\n      LongSpeeds: {cycle: 1 s, phase: 500 ms}\n      LongAnswer: {cycle: 1 s, phase: 500 ms}",
		"    messages:\n", "    messages:\n      LongPressure: {timeout: 5 s, from: 0x21}\n      LongCommand: {timeout: 5 s}\n",
		"    send:\n", "    send:\n      - w_out -> LongSpeeds.long_out\n      - w_engine -> LongAnswer.long_in\n"}
}

// extendedBench returns the truck bench with additions to its database and with replacements in its file:
// old text, new text, ...
func extendedBench(t *testing.T, additions string, replace ...string) *bench.Bench {
	t.Helper()
	dir, text := extendedFiles(t, additions, replace...)
	b, err := bench.Parse("b.yaml", dir, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// extendedFiles writes the database of extendedBench to a folder, and returns it with the bench file.
func extendedFiles(t *testing.T, additions string, replace ...string) (dir, file string) {
	t.Helper()
	text, err := plants.Read("truck-bench")
	db, err2 := plants.Read("j1939.dbc")
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	messages, attributes, _ := strings.Cut(additions, "BA_ ")
	all := strings.Replace(string(db), "\nCM_ \"", messages+"\nCM_ \"", 1) + "BA_ " + attributes
	if err := os.WriteFile(filepath.Join(dir, "long.dbc"), []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, strings.NewReplacer(append([]string{"j1939.dbc", "long.dbc"}, replace...)...).Replace(string(text))
}

// input returns the value of an input of the plant in its declared unit.
func (r *rig) input(name string) float64 {
	i := bench.PortIndex(r.h.Tables.Inputs, name)
	return r.h.Tables.Inputs[i].DeclaredUnit().FromSI(r.loop.U[i])
}

// output returns the value of an output of the plant in its declared unit.
func (r *rig) output(name string) float64 {
	i := bench.PortIndex(r.h.Tables.Outputs, name)
	return r.h.Tables.Outputs[i].DeclaredUnit().FromSI(r.loop.Y[i])
}

// sendPackets sends data bytes in packets of seven from a number to a number.
func (r *rig) sendPackets(id uint32, data []byte, from, to int) {
	for n := from; n <= to; n++ {
		f := can.Frame{ID: id | can.EFF, Len: 8, Data: [64]byte{byte(n), 255, 255, 255, 255, 255, 255, 255}}
		copy(f.Data[1:8], data[7*(n-1):min(7*n, len(data))])
		r.send(f)
	}
}

func (r *rig) sendData(id uint32, data ...byte) {
	f := can.Frame{ID: id | can.EFF, Len: uint8(len(data))}
	copy(f.Data[:], data)
	r.send(f)
}

func TestSignalOfAMessageToAllEntersThePlantAtOneTick(t *testing.T) {
	r := startRig(t, longBench(t))
	data := bytes.Repeat([]byte{0xFF}, 20)
	data[16] = 73
	start := r.input("C1.pressure")
	for _, source := range []uint32{0x22, 0x21} { // only 0x21 is the sender
		r.sendData(0x18ECFF00|source, 32, 20, 0, 3, 0xFF, 0x10, 0xFF, 0)
		r.sendPackets(0x18EBFF00|source, data, 1, 2)
		r.tick()
		if r.tick(); r.input("C1.pressure") != start {
			t.Error("a part of the message is decoded")
		}
		r.sendPackets(0x18EBFF00|source, data, 3, 3)
		r.tick()
		r.tick()
		want := map[uint32]float64{0x22: start, 0x21: 7.3}[source]
		if got := r.input("C1.pressure"); !(got > want-1e-9 && got < want+1e-9) {
			t.Errorf("from 0x%X: C1 has %g bar, want %g", source, got, want)
		}
	}
	if c := r.port.Counts(); c.Messages.Received != 2 || r.status.RxUnknown.Load() != 0 {
		t.Errorf("%+v, %d unknown", c, r.status.RxUnknown.Load())
	}
}

func TestMessageToTheBenchIsConfirmedAndDecoded(t *testing.T) {
	r := startRig(t, longBench(t))
	data := bytes.Repeat([]byte{0xFF}, 100)
	data[90], data[91] = 0x88, 0x13 // 5000
	r.sendData(0x18EC8007, 16, 100, 0, 15, 255, 0, 0xEF, 0)
	from := 1
	for range 8 {
		for _, f := range r.tick() {
			if f.ID != 0x1CEC0780|can.EFF {
				continue
			}
			switch f.Data[0] {
			case 17:
				from = int(f.Data[2])
				r.sendPackets(0x18EB8007, data, from, from+int(f.Data[1])-1)
			case 19:
				if [8]byte(f.Data[:8]) != [8]byte{19, 100, 0, 15, 255, 0, 0xEF, 0} {
					t.Errorf("confirmed by % X", f.Data[:8])
				}
			}
		}
	}
	if got := r.input("C2.pressure"); !(got > 5-1e-9 && got < 5+1e-9) {
		t.Errorf("C2 has %g bar, want 5", got)
	}
	if c := r.port.Counts(); c.Messages.Received != 1 || c.Messages.Broken != 0 {
		t.Errorf("%+v", c)
	}
}

// The client assembles what it hears by itself.
func TestMessagesOfTheBenchAreAssembledByAClient(t *testing.T) {
	r := startRig(t, longBench(t))
	toAll, toNode, last, confirmed := []byte{}, make([]byte, 154), int64(0), false
	var out, in float64 // speeds of the plant when the messages are made, rpm
	for k := range 140 {
		frames := r.tick()
		if k == 49 { // at 500 ms
			out, in = r.output("w_out"), r.output("w_engine")
		}
		for _, f := range frames {
			switch f.ID &^ can.EFF {
			case 0x1CECFF80:
				if [8]byte(f.Data[:8]) != [8]byte{32, 23, 0, 4, 0xFF, 0x11, 0xFF, 0} || len(toAll) > 0 {
					t.Errorf("announced by % X, after %d bytes", f.Data[:8], len(toAll))
				}
				last = r.now
			case 0x1CEBFF80:
				if gap := r.now - last; gap < 50e6 || gap > 200e6 || int(f.Data[0]) != len(toAll)/7+1 {
					t.Errorf("packet %d after %d ms", f.Data[0], gap/1e6)
				}
				toAll, last = append(toAll, f.Data[1:8]...), r.now
			case 0x1CEC0380:
				if [8]byte(f.Data[:8]) != [8]byte{16, 150, 0, 22, 16, 0, 0xEF, 0} {
					t.Errorf("requested by % X", f.Data[:8])
				}
				r.sendData(0x1CEC8003, 17, 2, 1, 255, 255, 0, 0xEF, 0)
			case 0x1CEB0380:
				switch copy(toNode[7*(f.Data[0]-1):], f.Data[1:8]); f.Data[0] {
				case 2:
					r.sendData(0x1CEC8003, 17, 16, 3, 255, 255, 0, 0xEF, 0)
				case 18:
					r.sendData(0x1CEC8003, 17, 4, 19, 255, 255, 0, 0xEF, 0)
				case 22:
					r.sendData(0x1CEC8003, 19, 150, 0, 22, 255, 0, 0xEF, 0)
					confirmed = true
				}
			}
		}
	}
	ones := bytes.Repeat([]byte{0xFF}, 42)
	if len(toAll) != 28 || !bytes.Equal(toAll[:20], ones[:20]) || !bytes.Equal(toAll[22:], ones[:6]) || !confirmed {
		t.Fatalf("to all % X, confirmed %t", toAll, confirmed)
	}
	if got := float64(binary.LittleEndian.Uint16(toAll[20:])) * 0.125; !(math.Abs(got-max(0, out)) <= 0.0625) {
		t.Errorf("output shaft %g rpm in the message, %g in the plant", got, out)
	}
	if got := float64(binary.LittleEndian.Uint32(toNode[137:])>>4&0xFFFF) * 0.125; !(in > 1) || !(math.Abs(got-in) <= 0.0625) {
		t.Errorf("engine %g rpm in the message, %g in the plant", got, in)
	}
	toNode[137], toNode[138], toNode[139] = toNode[137]|0xF0, 0xFF, toNode[139]|0x0F
	if !bytes.Equal(toNode, bytes.Repeat([]byte{0xFF}, 154)) {
		t.Errorf("to the node, without the speed: % X", toNode)
	}
	if c := r.port.Counts(); c.Messages.Sent != 2 || c.Messages.Broken != 0 || c.Messages.Replaced != 0 {
		t.Errorf("%+v", c)
	}
}

func TestCycleShorterThanThePacketsToAllIsRefused(t *testing.T) {
	b := longBench(t)
	for i := range b.Buses[0].Frames {
		if f := &b.Buses[0].Frames[i]; f.Message == "LongSpeeds" {
			f.CycleNs, f.PhaseNs = 230e6, 0
		}
	}
	if _, err := bench.Prepare(b); err == nil || !strings.Contains(err.Error(), "cycle 230 ms: the packets of its 23 bytes to all take 240 ms") {
		t.Error(err)
	}
}
