package port_test

import (
	"bytes"
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

// The record has the frames of the port with their origin, and the message at the tick of its values. A
// replay computes the same inputs and outputs from it, bit for bit.
func TestRecordOfAMessageReplaysBitForBit(t *testing.T) {
	r := startRig(t, longBench(t))
	file := filepath.Join(t.TempDir(), "drive.rec")
	c, err := recorder.New(report.View{Handover: r.h, Status: r.status}, recorder.Options{Path: file, Ports: r.port.TakeSent})
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte{0xFF}, 100)
	data[90], data[91] = 0x88, 0x13
	for k := range 100 {
		if k == 5 {
			r.sendData(0x18EC8007, 16, 100, 0, 15, 255, 0, 0xEF, 0)
		}
		for _, f := range r.tick() {
			if f.ID == 0x1CEC0780|can.EFF && f.Data[0] == 17 {
				r.sendPackets(0x18EB8007, data, int(f.Data[2]), int(f.Data[2]+f.Data[1])-1)
			}
		}
	}
	c.Write(time.Now())
	c.End()
	c.Release()
	if why := c.Incomplete(); why != "" {
		t.Fatal(why)
	}
	if got := r.input("C2.pressure"); !(got > 5-1e-9 && got < 5+1e-9) {
		t.Fatalf("C2 has %g bar, want 5", got)
	}

	in, err := record.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ours, received, sent := 0, 0, 0
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		f := &e.Frame
		switch long := f.Flags&can.FlagLong != 0; {
		case e.Kind != record.FrameEntry:
		case f.Other && f.Sent:
			ours++
		case long && !f.Sent && f.ID == 0x18EF8007|can.EFF && f.Len == 3: // two bytes of the signal, and the last one
			received++
		case long && f.Sent:
			sent++
		}
	}
	// clear to send and its confirmation; announcement of LongSpeeds and its packets; request of LongAnswer
	if ours != 2+5+1 || received != 1 || sent != 2 {
		t.Errorf("the record has %d frames of the port, %d messages received and %d sent; want 8, 1 and 2", ours, received, sent)
	}
	same, err := virtual.Replay{Record: file}.Run()
	if err != nil || same.Ticks != 100 {
		t.Errorf("%v, %v; want 100 identical ticks", same, err)
	}
}
