package rt

import (
	"testing"

	"lockstep/io/can"
	"lockstep/rt/fault"
)

// longCommand is a Command that a port has assembled, which asks for u, in cm/s.
func longCommand(bus int64, u, length uint8) *PortFrame {
	return &PortFrame{Bus: int32(bus), Stamp: 7, Frame: can.Frame{ID: 0x110, Len: length, Data: [64]byte{u}}}
}

func TestTickDecodesSixteenMessagesOfSeveralFrames(t *testing.T) {
	b := newBench(t, Overrun{})
	for u := range uint8(40) {
		if !b.page.PostLong(longCommand(0, u+1, 4)) {
			t.Fatalf("message %d finds no room", u+1)
		}
	}
	for i, want := range []float64{0.16, 0.32, 0.40, 0.40} {
		b.turn(1)
		if got := b.page.Rx[0].Counts().Frames; b.U[0] != want || got != uint64(100*want+0.5) {
			t.Errorf("tick %d: the command is %v m/s after %d frames, want %v", i+1, b.U[0], got, want)
		}
	}
}

func TestMessageOfAPortIsReceivedIfItsBusAndItsLengthExist(t *testing.T) {
	for _, c := range []struct {
		bus    int64
		length uint8
		want   uint64
	}{{0, 0, 1}, {0, 64, 1}, {0, 65, 0}, {0, 255, 0}, {1, 4, 0}, {-1, 4, 0}} {
		b := newBench(t, Overrun{})
		f := longCommand(c.bus, 5, c.length)
		f.Frame.ID = 0x111 // of no message
		b.page.PostLong(f)
		b.turn(1)
		if got := b.page.RxUnknown.Load(); got != c.want {
			t.Errorf("bus %d, %d bytes: received %d times, want %d", c.bus, c.length, got, c.want)
		}
	}
}

func TestMessageOfAPortIsDecodedAsOftenAsAFaultRepeatsIt(t *testing.T) {
	b := newBench(t, Overrun{}, func(c *Config, _ *integrator) {
		c.Faults = fault.Plan{Faults: []fault.Fault{{Kind: fault.Duplicate, Where: fault.ReceivedFrame, Duration: 100}}}
	})
	b.page.PostLong(longCommand(0, 5, 4))
	b.turn(1)
	if n := b.page.Rx[0].Counts().Frames; n != 2 || b.U[0] != 0.05 {
		t.Errorf("%d frames decoded, the command is %v m/s; want 2 and 0.05", n, b.U[0])
	}
}

func TestQueueOfAPortHolds256FramesInTheirOrder(t *testing.T) {
	var p StatusBlock
	next, read := int64(0), int64(0)
	for round := range 3 {
		for p.ports.toPort.push(&PortFrame{Bus: int32(next), Stamp: -next}) {
			next++
		}
		if next-read != 256 || p.PortLost() != uint64(round+1) {
			t.Fatalf("round %d: the queue holds %d frames, %d are lost; want 256 and %d", round, next-read, p.PortLost(), round+1)
		}
		for range 100 {
			var f PortFrame
			if !p.NextPortFrame(&f) || int64(f.Bus) != read || f.Stamp != -read {
				t.Fatalf("frame %d reads %+v", read, f)
			}
			read++
		}
	}
	for range next - read {
		p.NextPortFrame(&PortFrame{})
	}
	if p.NextPortFrame(&PortFrame{}) {
		t.Error("an empty queue has a frame")
	}
}

func TestMessageAskedForIsSentOnce(t *testing.T) {
	var p StatusBlock
	asked := map[int]bool{0: true, 1: true, 63: true, 64: true, MaxTx - 1: true}
	for i := range asked {
		p.SendNow(i)
	}
	for range 2 {
		for i := range MaxTx {
			if got := p.takeSendNow(i); got != asked[i] {
				t.Errorf("message %d: %t, want %t", i, got, asked[i])
			}
		}
		clear(asked)
	}
}

// With filters the port gets only what it takes, and what the plant and the tester both receive; the rest is unknown.
func TestPortGetsOnlyWhatItTakesAndWhatTheTesterWaitsFor(t *testing.T) {
	exact := func(id uint32) [][]can.Filter { return [][]can.Filter{{{ID: id, Mask: can.EFF | can.MaskEFF}}} }
	b := newBench(t, Overrun{}, func(c *Config, _ *integrator) { c.Ports, c.Taken, c.Tested = 1, exact(0x111), exact(0x110) })
	b.unit.Send(&can.Frame{ID: 0x111, Len: 8})
	b.unit.Send(&can.Frame{ID: 0x112, Len: 8})
	b.command(t, 1) // 0x110
	b.turn(1)
	var ids []uint32
	for f := (PortFrame{}); b.page.NextPortFrame(&f); {
		ids = append(ids, f.Frame.ID)
	}
	if n := b.page.RxUnknown.Load(); n != 1 || b.U[0] != 1 || len(ids) != 2 || ids[0] != 0x111 || ids[1] != 0x110 {
		t.Errorf("the port gets %X, %d unknown, command %v m/s", ids, n, b.U[0])
	}
}

// The port of a bus gets the frames that are not the plant's; without a port they are unknown.
func TestPortGetsTheFramesThatAreNotThePlants(t *testing.T) {
	for _, ports := range []uint64{0, 1} {
		b := newBench(t, Overrun{}, func(c *Config, _ *integrator) { c.Ports = ports })
		b.unit.Send(&can.Frame{ID: 0x111, Len: 8, Data: [64]byte{9}})
		b.command(t, 1)
		b.turn(1)
		var f PortFrame
		got := b.page.NextPortFrame(&f)
		if got != (ports == 1) || got && (f.Bus != 0 || f.Frame.ID != 0x111 || f.Frame.Len != 8 || f.Frame.Data[0] != 9) {
			t.Errorf("ports %b: %t, %+v", ports, got, f)
		}
		if n := b.page.RxUnknown.Load(); n != 1-ports || b.page.NextPortFrame(&f) || b.U[0] != 1 {
			t.Errorf("ports %b: %d unknown frames, command %v m/s", ports, n, b.U[0])
		}
	}
}
