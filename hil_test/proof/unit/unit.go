// Package unit owns the virtual control units of package proof, which share no code with the
// product. The script unit.py is a unit on python3-can and python3-crccheck. This package is a unit
// on brutella/can with its own checksums, for the classic frames.
package unit

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brutella/can"
)

const (
	cycle = 10 * time.Millisecond // cycle of TCU_1
	start = 5 * time.Minute       // longest wait for the bench, which starts slowly on a loaded machine
	quiet = 4 * time.Second       // silence after which the bench counts as ended
	idTCU = 0x110
)

// Seen counts the received frames of a message.
type Seen struct {
	Frames   int `json:"frames"`
	Wrong    int `json:"wrong"`    // frames with a wrong checksum
	Repeated int `json:"repeated"` // frames with a repeated counter
	Lost     int `json:"lost"`     // missing frames, by the counter
	Length   int `json:"length"`   // frames of a wrong length, which are not checked further
	Flags    int `json:"flags"`    // frames other than classic data frames
	Phase    int `json:"phase"`    // frames of a grid point at which none is due
	Old      int `json:"old"`      // frames of a grid point before the newest
	Split    int `json:"split"`    // frames with groups that disagree about the lost frames
	Grids    int `json:"grids"`    // different grid points
}

// Result is the output of a unit at its end.
type Result struct {
	Frames  map[string]*Seen `json:"frames"`  // by message
	Unknown int              `json:"unknown"` // frames of other identifiers
	Sent    int              `json:"sent"`    // sent frames
	Refused int              `json:"refused"` // attempts to send that the bus refused
}

// frame is the description of a message and the state of its check.
type frame struct {
	name         string
	length       uint8
	cycle, phase int // grid points
	grid         int // first byte of the grid point; 0: none
	counter      func(d []byte) (n, modulus int)
	check        func(d []byte) bool // reports whether the checksum is right
	seen         Seen
	begun        bool
	last         int
	grids        map[int]bool
}

// monitor checks the received frames.
type monitor struct {
	frames  map[uint32]*frame
	unknown int
	newest  int
}

func network() map[uint32]*frame {
	return map[uint32]*frame{
		0x112: {name: "TCU_2C", length: 8, cycle: 2, counter: nibble(1, 0, 15), check: func(d []byte) bool {
			id := byte(0x11)
			if d[1]&1 != 0 {
				id = 0x47
			}
			return d[0] == crc8(0x1D, 0, append([]byte{id}, d[1:]...))
		}},
		0x200: {name: "Wheels", length: 8, cycle: 1, grid: 2, counter: nibble(1, 0, 16), check: profile2},
		0x201: {name: "Shafts", length: 8, cycle: 2, grid: 6, counter: nibble(1, 0, 15), check: func(d []byte) bool {
			return d[0] == crc8(0x1D, 0, append([]byte{0x01, 0x02}, d[1:]...))
		}},
		0x202: {name: "Torque", length: 8, cycle: 2, phase: 1, grid: 4, counter: nibble(6, 4, 16), check: func(d []byte) bool {
			return d[7] == crc8(0x1D, 0xFF, d[:7])^0xFF
		}},
		0x203: {name: "Gears", length: 8, cycle: 4, phase: 2, grid: 4, counter: nibble(6, 0, 15), check: nibbles},
		0x204: {name: "Service", length: 8, cycle: 20, phase: 3, grid: 6, counter: nibble(0, 4, 16), check: func(d []byte) bool {
			return d[1] == 0x04+0x02+sum(d[:1])+sum(d[2:])
		}},
		0x18FEF103 | can.MaskEff: {name: "Engine", length: 8, cycle: 4, grid: 6, counter: nibble(1, 0, 16), check: func(d []byte) bool {
			return d[0] == crc8(0x1D, 0, d[1:])^0xA5
		}},
		0x302: {name: "MotionC", length: 8, cycle: 1, grid: 4, counter: nibble(2, 0, 16), check: func(d []byte) bool {
			return uint16(d[0])<<8|uint16(d[1]) == crc16(d[2:])
		}},
		0x303: {name: "ChassisC", length: 8, cycle: 4, phase: 1, grid: 4, counter: nibble(6, 4, 16), check: func(d []byte) bool {
			x := byte(0x5A)
			for _, b := range d {
				x ^= b // the checksum is included: the result is 0
			}
			return x == 0
		}},
		0x3C0: {name: "Ignition", length: 4, cycle: 20, phase: 7, grid: 2, counter: nibble(1, 0, 16), check: profile2},
		0x3C1: {name: "Ambient", length: 8, cycle: 200, phase: 11, grid: 6, check: func([]byte) bool { return true },
			counter: func(d []byte) (int, int) { return int(d[4]), 256 }},
	}
}

// nibble returns the reader of a counter of four bits.
func nibble(at, shift, modulus int) func(d []byte) (int, int) {
	return func(d []byte) (int, int) { return int(d[at]>>shift) & 15, modulus }
}

func crc8(poly, crc byte, data []byte) byte {
	for _, b := range data {
		crc ^= b
		for range 8 {
			top := crc & 0x80
			crc <<= 1
			if top != 0 {
				crc ^= poly
			}
		}
	}

	return crc
}

func crc16(data []byte) uint16 {
	crc := uint16(0xFFFF)
	for _, b := range data {
		crc ^= uint16(b) << 8
		for range 8 {
			top := crc & 0x8000
			crc <<= 1
			if top != 0 {
				crc ^= 0x1021
			}
		}
	}

	return crc
}

func sum(data []byte) (s byte) {
	for _, b := range data {
		s += b
	}
	return s
}

func nibbles(d []byte) bool {
	s := byte(0)
	for i, b := range d {
		if s += b & 15; i != 6 {
			s += b >> 4
		}
	}

	return d[6]>>4 == s&15
}

// ids are the data identifiers by counter, for AUTOSAR profile 2.
var ids = [16]byte{7, 42, 99, 1, 200, 17, 33, 64, 5, 91, 120, 250, 3, 77, 18, 155}

func crc2(d []byte) byte {
	return crc8(0x2F, 0xFF, append(append([]byte{}, d[1:]...), ids[d[1]&15])) ^ 0xFF
}

func profile2(d []byte) bool { return d[0] == crc2(d) }

// receive checks a frame.
func (w *monitor) receive(f *can.Frame) {
	k := w.frames[f.ID]
	if k == nil {
		w.unknown++
		return
	}

	s := &k.seen
	s.Frames++
	if f.Length != k.length {
		s.Length++
		return
	}

	d := f.Data[:k.length]
	if !k.check(d) {
		s.Wrong++
	}
	n, modulus := k.counter(d)
	if step := (n - k.last + modulus) % modulus; k.begun {
		if step == 0 {
			s.Repeated++
		}
		s.Lost += max(0, step-1)
	}

	k.begun, k.last = true, n
	if k.grid == 0 {
		return
	}
	grid := int(d[k.grid]) | int(d[k.grid+1])<<8
	if grid%k.cycle != k.phase {
		s.Phase++
	}
	if grid < w.newest {
		s.Old++
	}
	w.newest = max(w.newest, grid)
	if k.grids == nil {
		k.grids = map[int]bool{}
	}
	k.grids[grid] = true
}

func (w *monitor) result() *Result {
	t := &Result{Frames: map[string]*Seen{}, Unknown: w.unknown}
	for _, f := range w.frames {
		if f.seen.Frames > 0 {
			f.seen.Grids = len(f.grids)
			t.Frames[f.name] = &f.seen
		}
	}

	return t
}

// controller keeps the wheel between 9.5 and 11 rad/s: in ratio 12 the vehicle accelerates, in
// ratio 4 it slows down.
type controller struct {
	high bool
	bar  [4]float64 // pressures of clutches 4, 5, 7, 8, bar
}

func (l *controller) step(wheel float64) {
	switch {
	case wheel >= 11:
		l.high = true
	case wheel <= 9.5:
		l.high = false
	}

	l.bar = [4]float64{17.5, 0, 18, 0}
	if l.high {
		l.bar = [4]float64{0, 17.5, 0, 18}
	}
}

// TCU1 returns the frame TCU_1 with the n-th counter and the pressures of clutches 4, 5, 7 and 8,
// bar.
func TCU1(n int, bar [4]float64) can.Frame {
	f := can.Frame{ID: idTCU, Length: 8}
	f.Data[1] = byte(n & 15)
	word := uint64(0)
	for i, p := range bar {
		word |= uint64(p*100) << (12 * i)
	}
	for i := range 6 {
		f.Data[2+i] = byte(word >> (8 * i))
	}
	f.Data[0] = crc2(f.Data[:])
	return f
}

// Run runs the unit on a bus; args are BUS SECONDS. It prints "ready", waits for the bench, sends
// TCU_1 every 10 ms for SECONDS, and prints its Result as JSON when the bus is silent.
func Run(args []string, out io.Writer) error {
	i, err := net.InterfaceByName(args[0])
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseFloat(args[1], 64)
	if err != nil {
		return err
	}
	bus, err := can.NewReadWriteCloserForInterface(i)
	if err != nil {
		return err
	}
	w := &monitor{frames: network()}
	var (
		mu    sync.Mutex
		wheel atomic.Int64 // w4 backward, 0.001 rad/s
		last  atomic.Int64 // time of the last frame of the bench, ns since 1970; 0: none yet
	)
	go func() {
		for {
			var f can.Frame
			if bus.ReadFrame(&f) != nil {
				return
			}
			if f.ID == 0x200 {
				wheel.Store(-int64(int16(uint16(f.Data[4])<<8 | uint16(f.Data[5]))))
			}
			mu.Lock()
			w.receive(&f)
			mu.Unlock()
			if f.ID != 0x111 && f.ID != 0x112 { // the other unit may be first
				last.Store(time.Now().UnixNano())
			}
		}
	}()

	fmt.Fprintln(out, "ready")
	for end := time.Now().Add(start); last.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("no frame of the bench within %v", start)
		}
	}
	sent, refused, l := 0, 0, controller{}
	end := time.Now().Add(time.Duration(seconds * 1e9))
	for due := time.Now(); due.Before(end); due = due.Add(cycle) {
		if time.Sleep(time.Until(due)); time.Now().After(end) {
			break // too late to send
		}
		l.step(float64(wheel.Load()) / 1000)
		for f := TCU1(sent, l.bar); bus.WriteFrame(f) != nil; time.Sleep(time.Millisecond) {
			refused++ // the buffer is full
		}
		sent++
	}

	for time.Since(time.Unix(0, last.Load())) < quiet {
		time.Sleep(100 * time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	t := w.result()
	t.Sent, t.Refused = sent, refused
	return json.NewEncoder(out).Encode(t)
}
