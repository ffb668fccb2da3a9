package faults

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/rt/report"
)

// Frames that the bench sends.
const (
	speeds = 0x200 // every tick
	torque = 0x201 // every second tick
	status = 0x202 // every second tick
)

// tick is the bench's period.
const tick = 5 * time.Millisecond

// frame is a received frame.
type frame struct {
	at   time.Time // time of sending, by the kernel's stamp
	id   uint32
	data uint64 // little-endian: byte 0 is the lowest
}

// counter is the first bit of the rolling counter of 4 bits in each frame.
var counter = map[uint32]int{speeds: 60, torque: 48, status: 60}

// safeBits are the data of the frames with the safe values, without the counter. In the Motorola
// frame torque a signal is two bytes, the high one first.
var safeBits = map[uint32]uint64{
	speeds: 10*50 | 20*100<<15 | 30*200<<30 | 4*1000<<45,
	torque: swap(100*10) | swap(200*2)<<16 | swap(300)<<32,
	status: 0o22222222, // eight modes of 3 bits, "free"; no lag
}

func swap(x uint64) uint64 { return x>>8 | x&0xff<<8 }

func (f frame) count() int { return int(f.data >> counter[f.id] & 15) }

func (f frame) safe() bool {
	return f.data&^(15<<counter[f.id]) == safeBits[f.id]
}

// unit is the control unit at the other end of the bus. It records the received frames.
type unit struct {
	a    *attempt
	bus  *os.File
	mu   sync.Mutex
	got  []frame
	over chan struct{} // closed when the bench has closed its end
}

// listen starts a unit. The kernel stamps each frame when it is sent, so that delays of this
// process do not matter.
func listen(a *attempt, bus *os.File) *unit {
	a.Helper()
	u := &unit{a: a, bus: bus, over: make(chan struct{})}
	raw, err := bus.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) })
	}
	if err != nil {
		a.Fatal(err)
	}
	go func() {
		defer close(u.over)
		for u.receive(raw) {
		}
	}()
	return u
}

// receive reads one frame; false: the bus is closed.
func (u *unit) receive(raw syscall.RawConn) bool {
	b, stamp := make([]byte, 72), make([]byte, 64)
	var n int
	var err error
	closed := raw.Read(func(fd uintptr) bool {
		n, _, _, _, err = unix.Recvmsg(int(fd), b, stamp, 0)
		return err != unix.EAGAIN
	})
	if closed != nil || err != nil || n < 16 {
		return false
	}
	sent := (*unix.Timespec)(unsafe.Pointer(&stamp[unix.CmsgLen(0)]))
	f := frame{time.Unix(sent.Unix()), binary.NativeEndian.Uint32(b), binary.LittleEndian.Uint64(b[8:])}
	u.mu.Lock()
	u.got = append(u.got, f)
	u.mu.Unlock()
	return true
}

// send sends a frame of 8 bytes; false: the bench does not read it within 1 s.
func (u *unit) send(id uint32, data uint64) bool {
	b := make([]byte, 16)
	binary.NativeEndian.PutUint32(b, id)
	b[4] = 8
	binary.LittleEndian.PutUint64(b[8:], data)
	_ = u.bus.SetWriteDeadline(time.Now().Add(time.Second)) // no error on a socket
	n, _ := u.bus.Write(b)
	return n == 16
}

// all returns the frames received so far.
func (u *unit) all() []frame {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.got)
}

// ticks returns the number of received frames Speeds, one for every tick.
func (u *unit) ticks() int { return len(of(u.all(), speeds)) }

// await waits until a condition on the frames holds.
func (u *unit) await(what string, holds func([]frame) bool) {
	u.a.Helper()
	late := time.After(timeout)
	for !holds(u.all()) {
		select {
		case <-time.After(time.Millisecond):
		case <-u.over:
			u.a.giveUp("on the bus: no %s; it was closed after %d frames", what, len(u.all()))
		case <-late:
			u.a.giveUp("on the bus: no %s within %v; %d frames came", what, timeout, len(u.all()))
		}
	}
}

// ticking waits for n more ticks.
func (u *unit) ticking(n int) {
	u.a.Helper()
	from := u.ticks()
	u.await("ticks", func(all []frame) bool { return len(of(all, speeds)) >= from+n })
}

// end waits until all processes of the bench have closed the bus, and returns all frames.
func (u *unit) end() []frame {
	u.a.Helper()
	select {
	case <-u.over:
	case <-time.After(timeout):
		u.a.Fatalf("the bus is not closed within %v", timeout)
	}
	return u.all()
}

// of returns the frames with an identifier.
func of(all []frame, id uint32) (list []frame) {
	for _, f := range all {
		if f.id == id {
			list = append(list, f)
		}
	}
	return list
}

// split returns the frames before the first safe one, and the frames from it on, which must all be
// safe.
func (u *unit) split(all []frame) (before, safe []frame) {
	u.a.Helper()
	i := slices.IndexFunc(all, frame.safe)
	if i < 0 {
		return all, nil
	}
	if j := slices.IndexFunc(all[i:], func(f frame) bool { return !f.safe() }); j >= 0 {
		u.a.Errorf("frame %d after the first safe one, %#x %016x, is not safe", j, all[i+j].id, all[i+j].data)
	}
	return all[:i], all[i:]
}

// checkSafeEnd checks that the run ends with 100 ms of safe values, in all three frames.
func (u *unit) checkSafeEnd(all []frame) {
	u.a.Helper()
	_, safe := u.split(all)
	for id, want := range map[uint32]int{speeds: 20, torque: 10, status: 10} {
		list := of(safe, id)
		u.a.must(len(list) > 0 && len(list) <= want+1, "%d safe frames %#x, want %d", len(list), id, want)
		if len(list) > 0 {
			lasted := list[len(list)-1].at.Sub(list[0].at)
			u.a.inTime(lasted > 80*time.Millisecond && len(list) > want/2, "%d safe frames %#x in %v, want %d in 100 ms", len(list), id, lasted, want)
		}
	}
}

// counted checks that the counters miss no more frames than the bench has dropped.
func (u *unit) counted(all []frame, r report.Report) {
	u.a.Helper()
	missing := 0
	for id := range counter {
		list := of(all, id)
		for i := 1; i < len(list); i++ {
			missing += (list[i].count() - list[i-1].count() + 15) & 15
		}
	}
	u.a.must(missing <= int(r.TxDropped), "%d frames are missing by their counters, %d were dropped", missing, r.TxDropped)
}

// pause returns the longest time between two frames Speeds, and the index of the second one.
func pause(all []frame) (longest time.Duration, after int) {
	list := of(all, speeds)
	for i := 1; i < len(list); i++ {
		if d := list[i].at.Sub(list[i-1].at); d > longest {
			longest, after = d, i
		}
	}
	return longest, after
}
