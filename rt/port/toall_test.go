package port_test

import (
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/virtual"
)

// Two commands that differ in their destination only: the gearbox, 0x80, and the brakes, 0x0B.
const commands = `
BO_ 2230288387 ToGearbox: 8 TCU
 SG_ to_C1 : 0|8@1+ (0.1,0) [0|25] "bar" Gearbox
BO_ 2230258435 ToBrakes: 8 TCU
 SG_ to_C2 : 8|8@1+ (0.1,0) [0|25] "bar" Brakes
BA_ "VFrameFormat" BO_ 2230288387 3;
BA_ "VFrameFormat" BO_ 2230258435 3;
`

// The record has the frame as it came, and the copy for the second message. A replay agrees bit for bit.
func TestFrameToAllReachesTheInputsOfEachMessage(t *testing.T) {
	r := startRig(t, extendedBench(t, commands, "time: 200 ms", "time: 1 s",
		"ClutchPressures.pressure_C1 ->", "ToGearbox.to_C1 ->", "ClutchPressures.pressure_C2 ->", "ToBrakes.to_C2 ->",
		"    messages:\n", "    messages:\n      ToGearbox: {timeout: 5 s}\n      ToBrakes: {timeout: 5 s}\n"))
	file := filepath.Join(t.TempDir(), "drive.rec")
	c, err := recorder.New(report.View{Handover: r.h, Status: r.status}, recorder.Options{Path: file, Ports: r.port.TakeSent})
	if err != nil {
		t.Fatal(err)
	}
	c1, c2 := r.input("C1.pressure"), r.input("C2.pressure")
	for _, v := range []struct {
		id     uint32
		c1, c2 float64
	}{{0x04EF0003, c1, c2}, {0x04EF8003, 1, c2}, {0x04EF0B03, 1, 4}, {0x04EFFF03, 5, 6}, {0x18EFFF03, 7, 8}, {0x04EFFF04, 7, 8}} {
		r.sendData(v.id, byte(10*max(v.c1, 1)), byte(10*max(v.c2, 2)), 255, 255, 255, 255, 255, 255)
		r.tick()
		r.tick()
		if got1, got2 := r.input("C1.pressure"), r.input("C2.pressure"); !(got1 > v.c1-1e-9 && got1 < v.c1+1e-9 && got2 > v.c2-1e-9 && got2 < v.c2+1e-9) {
			t.Errorf("%08X: C1 has %g bar and C2 %g, want %g and %g", v.id, got1, got2, v.c1, v.c2)
		}
	}
	c.Write(time.Now())
	c.End()
	c.Release()

	in, err := record.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	seen := map[uint32]int{} // copies count 100
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if f := &e.Frame; e.Kind == record.FrameEntry && !f.Sent {
			seen[f.ID&^can.EFF] += map[bool]int{false: 1, true: 100}[f.Copy]
		}
	}
	if seen[0x04EFFF03] != 1 || seen[0x18EFFF03] != 1 || seen[0x04EF8003]+seen[0x04EF0B03] != 102 || seen[0x18EF8003]+seen[0x18EF0B03] != 100 {
		t.Errorf("the record has the frames %v", seen)
	}
	if same, err := (virtual.Replay{Record: file}).Run(); err != nil || same.Ticks != 12 {
		t.Errorf("%v, %v; want 12 identical ticks", same, err)
	}
}
