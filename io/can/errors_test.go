package can

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// errorFrame returns an error frame of the given classes.
func errorFrame(classes uint32, data ...byte) Frame {
	f := Frame{ID: ERR | classes, Len: 8}
	copy(f.Data[:], data)
	return f
}

func TestErrorFramesSetTheControllersState(t *testing.T) {
	const crtl, cnt = unix.CAN_ERR_CRTL, unix.CAN_ERR_CNT
	var e Errors
	for i, c := range []struct {
		frame Frame
		want  Errors
	}{
		{errorFrame(crtl|cnt, 0, unix.CAN_ERR_CRTL_TX_WARNING, 0, 0, 0, 0, 96, 3),
			Errors{State: Warning, ByTx: true, HasCounters: true, Tx: 96, Rx: 3, Frames: 1, ErrorCounts: ErrorCounts{Warnings: 1}}},
		{errorFrame(crtl|cnt, 0, unix.CAN_ERR_CRTL_TX_PASSIVE|unix.CAN_ERR_CRTL_RX_WARNING, 0, 0, 0, 0, 128, 97),
			Errors{State: Passive, ByTx: true, ByRx: true, HasCounters: true, Tx: 128, Rx: 97, Frames: 2, ErrorCounts: ErrorCounts{Warnings: 1, Passives: 1}}},
		{errorFrame(crtl, 0, unix.CAN_ERR_CRTL_TX_PASSIVE), // repeated, without the counters
			Errors{State: Passive, ByTx: true, HasCounters: true, Tx: 128, Rx: 97, Frames: 3, ErrorCounts: ErrorCounts{Warnings: 1, Passives: 1}}},
		{errorFrame(unix.CAN_ERR_BUSOFF),
			Errors{State: Off, ByTx: true, HasCounters: true, Tx: 128, Rx: 97, Frames: 4, ErrorCounts: ErrorCounts{Warnings: 1, Passives: 1, Offs: 1}}},
		{errorFrame(unix.CAN_ERR_RESTARTED),
			Errors{State: Active, ByTx: true, HasCounters: true, Tx: 128, Rx: 97, Frames: 5, ErrorCounts: ErrorCounts{Warnings: 1, Passives: 1, Offs: 1, Restarts: 1}}},
		{errorFrame(crtl|cnt, 0, unix.CAN_ERR_CRTL_RX_PASSIVE, 0, 0, 0, 0, 0, 130),
			Errors{State: Passive, ByRx: true, HasCounters: true, Rx: 130, Frames: 6, ErrorCounts: ErrorCounts{Warnings: 1, Passives: 2, Offs: 1, Restarts: 1}}},
		{errorFrame(crtl|cnt, 0, unix.CAN_ERR_CRTL_ACTIVE),
			Errors{State: Active, HasCounters: true, Frames: 7, ErrorCounts: ErrorCounts{Warnings: 1, Passives: 2, Offs: 1, Restarts: 1}}},
		{errorFrame(unix.CAN_ERR_BUSOFF),
			Errors{State: Off, HasCounters: true, Frames: 8, ErrorCounts: ErrorCounts{Warnings: 1, Passives: 2, Offs: 2, Restarts: 1}}},
		{errorFrame(unix.CAN_ERR_PROT, 0, 0, unix.CAN_ERR_PROT_ACTIVE), // no bus error, but its end
			Errors{State: Active, HasCounters: true, Frames: 9, ErrorCounts: ErrorCounts{Warnings: 1, Passives: 2, Offs: 2, Restarts: 1}}},
	} {
		if !e.Add(&c.frame) || e != c.want {
			t.Errorf("frame %d: %+v, want %+v", i, e, c.want)
		}
	}
}

func TestErrorFramesAreCountedByClass(t *testing.T) {
	var e Errors
	for _, f := range []Frame{
		errorFrame(unix.CAN_ERR_LOSTARB, 12),
		errorFrame(unix.CAN_ERR_ACK | unix.CAN_ERR_BUSERROR), // one bus error with details
		errorFrame(unix.CAN_ERR_PROT|unix.CAN_ERR_BUSERROR, 0, 0, unix.CAN_ERR_PROT_STUFF, unix.CAN_ERR_PROT_LOC_CRC_SEQ),
		errorFrame(unix.CAN_ERR_TX_TIMEOUT),
		errorFrame(unix.CAN_ERR_CRTL, 0, unix.CAN_ERR_CRTL_RX_OVERFLOW),
		errorFrame(unix.CAN_ERR_CRTL, 0, unix.CAN_ERR_CRTL_TX_OVERFLOW),
		errorFrame(unix.CAN_ERR_TRX, 0, 0, 0, 0, unix.CAN_ERR_TRX_CANH_NO_WIRE),
		errorFrame(0),
	} {
		if !e.Add(&f) {
			t.Errorf("%+v is no error frame", f)
		}
	}
	want := Errors{Frames: 8, ErrorCounts: ErrorCounts{Arbitration: 1, LostBit: 12, NoAck: 1, Bus: 2, TxTimeout: 1, RxOverflow: 1, TxOverflow: 1, Transceiver: 1}}
	if e != want {
		t.Errorf("%+v, want %+v", e, want)
	}
}

func TestOtherFramesAreNotCountedAsErrors(t *testing.T) {
	long := errorFrame(unix.CAN_ERR_BUSOFF)
	long.Len = 64
	short := errorFrame(unix.CAN_ERR_BUSOFF)
	short.Len = 2
	for _, f := range []Frame{{ID: unix.CAN_ERR_BUSOFF, Len: 8}, long, short} {
		var e Errors
		if e.Add(&f) || e != (Errors{}) {
			t.Errorf("%+v: %+v", f, e)
		}
	}
}

func FuzzErrorFramesKeepAValidState(f *testing.F) {
	f.Add(uint32(ERR|unix.CAN_ERR_BUSOFF), []byte{0, 4, 0, 0, 0, 0, 200, 9})
	f.Add(uint32(ERR|unix.CAN_ERR_CRTL|unix.CAN_ERR_CNT), []byte{0, 0x3F, 0, 0, 0, 0, 200, 9})
	f.Fuzz(func(t *testing.T, id uint32, data []byte) {
		frame := Frame{ID: id, Len: 8}
		copy(frame.Data[:8], data)
		var e Errors
		for range 2 {
			e.Add(&frame)
		}
		if e.State > Off || e.Warnings+e.Passives > 2 || e.Offs > 2 || id&unix.CAN_ERR_BUSOFF != 0 && id&ERR != 0 && e.State != Off {
			t.Errorf("%#x % X twice: %+v", id, data, e)
		}
	})
}

// A pair carries an error frame like any other message.
func TestBusOffIsReportedInOrderWithDataFrames(t *testing.T) {
	b, unit := pair(t)
	dst := make([]Frame, 8)
	for _, c := range []struct {
		classes uint32
		off     bool
		offs    uint64
	}{{unix.CAN_ERR_BUSOFF, true, 1}, {unix.CAN_ERR_ACK, true, 1}, {unix.CAN_ERR_BUSOFF, true, 1}, {unix.CAN_ERR_RESTARTED, false, 1},
		{unix.CAN_ERR_BUSOFF | unix.CAN_ERR_CNT, true, 2}} {
		writeRaw(t, unit, frameBytes(errorFrame(c.classes)))
		writeRaw(t, unit, frameBytes(Frame{ID: 7}))
		if n := b.Recv(dst); n != 1 || dst[0].ID != 7 || b.Off != c.off || b.Stats.Offs != c.offs {
			t.Errorf("after %#x: %d frames, off %t, %d times; want the data frame, %t, %d times", c.classes, n, b.Off, b.Stats.Offs, c.off, c.offs)
		}
	}
}

// vcan delivers an error frame written to it to all subscribed sockets, as a
// controller's driver would.
func TestDialErrorsReceivesErrorFramesOnly(t *testing.T) {
	plain := dialOrSkip(t, "vcan0", Filter{}) // passes all data frames
	listener, err := DialErrors("vcan0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	writer := dialOrSkip(t, "vcan0")
	for _, f := range []Frame{{ID: 0x123}, errorFrame(unix.CAN_ERR_ACK), errorFrame(unix.CAN_ERR_BUSOFF)} {
		if !writer.Send(&f) {
			t.Fatalf("%+v is not sent", f)
		}
	}
	if got := recvAtLeast(listener, 2); len(got) != 2 || got[0] != ERR|unix.CAN_ERR_ACK || got[1] != ERR|unix.CAN_ERR_BUSOFF {
		t.Errorf("the listener received %#x, want two error frames", got)
	}
	if got := recvAtLeast(plain, 1); len(got) != 1 || got[0] != 0x123 || !plain.Off {
		t.Errorf("the plant's socket received %#x, off %t; want the data frame alone, and off", got, plain.Off)
	}
}

// A user often restarts a bus-off controller by hand; no error frame reports that.
func TestBusOffEndsWhenTheInterfaceGoesDown(t *testing.T) {
	addInterface(t, "vcan9", "72")
	ip(t, "link", "set", "vcan9", "up")
	b, writer := dialOrSkip(t, "vcan9", Filter{}), dialOrSkip(t, "vcan9")
	off := errorFrame(unix.CAN_ERR_BUSOFF)
	writer.Send(&off)
	send(t, writer, 1)
	if recvAtLeast(b, 1); !b.Off {
		t.Fatal("bus-off was not received")
	}
	ip(t, "link", "set", "vcan9", "down")
	if b.Recv(make([]Frame, 1)); b.Off {
		t.Error("still off, although the interface is down")
	}
	ip(t, "link", "set", "vcan9", "up")
	writer.Recv(make([]Frame, 1)) // reads the pending ENETDOWN
	send(t, writer, 2)
	if got := recvAtLeast(b, 1); len(got) != 1 || got[0] != 2 {
		t.Errorf("up again: received %v, want frame 2", got)
	}
}

// A process that shares the socket binds it again for the target.
func TestSocketIsReboundAfterItsInterfaceReturns(t *testing.T) {
	addInterface(t, "vcan9", "72")
	ip(t, "link", "set", "vcan9", "up")
	b := dialOrSkip(t, "vcan9", exact(5))
	file, err := b.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	shared, err := Share(file)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	if !b.Bound() {
		t.Error("a socket that was dialled is not bound")
	}
	ip(t, "link", "del", "vcan9")
	if b.Bound() || b.Send(&Frame{ID: 1}) {
		t.Error("a socket is bound to an interface that is gone")
	}
	if err := shared.Rebind("vcan9", []Filter{exact(5)}); !errors.Is(err, ErrNoInterface) {
		t.Errorf("bound to nothing: %v", err)
	}
	ip(t, "link", "add", "dev", "vcan9", "type", "vcan")
	ip(t, "link", "set", "vcan9", "mtu", "72", "up")
	if err := shared.Rebind("vcan9", []Filter{exact(5)}); err != nil {
		t.Fatal(err)
	}
	b.Recv(make([]Frame, 1)) // reads the pending error of the removed interface
	writer := dialOrSkip(t, "vcan9", Filter{})
	send(t, writer, 4, 5)
	if got := recvAtLeast(b, 1); len(got) != 1 || got[0] != 5 || !b.Bound() {
		t.Errorf("received %v, want what the filter passes", got)
	}
	if got := errorFrame(unix.CAN_ERR_BUSOFF); !writer.Send(&got) || recvAtLeast(writer, 0) != nil {
		t.Error("no error frame was written")
	}
	send(t, writer, 5)
	if recvAtLeast(b, 1); !b.Off {
		t.Error("bus-off is not received on the new interface")
	}
	send(t, b, 6)
	if got := recvAtLeast(writer, 1); len(got) != 1 || got[0] != 6 {
		t.Errorf("the other side received %v, want frame 6", got)
	}
}

func TestDialErrorsRefusesAMissingInterface(t *testing.T) {
	if b, err := DialErrors("vcan9"); b != nil || err == nil {
		t.Errorf("%v, %v; want an error", b, err)
	}
}

func TestSharedSocketSendsInParallelWithItsOwner(t *testing.T) {
	target, unit, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Share(target)
	if err != nil {
		t.Fatal(err)
	}
	first, err := Inherit(target)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Inherit(unit)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	send(t, first, 1)
	send(t, second, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	send(t, second, 3)
	if got := recvAll(other); len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 3 {
		t.Errorf("received %v, want 1, 2, 3", got)
	}
	second.Close()
}
