// Package unitprogram owns control units that are programs of the user: it starts a program, speaks the
// protocol of its socket, and names how the program failed. BENCH.md describes the protocol, c/lockstep.h
// is its header for C.
//
// Stepped runs a program in virtual time, inside the simulation. Relay is a process between the
// buses of a run in real time and a program: the loop writes to a pair and never waits for the program.
// A program on CAN interfaces of the host has no socket; Relay only starts it, keeps its output and
// ends it.
//
// The package does not read bench files (rt/bench), and knows no signals and no plant. It decodes no
// frame.
//
// Reading order: program.go (Spec), protocol.go (messages), process.go (the process and its group),
// stepped.go (virtual time), relay.go (real time).
package unitprogram

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/rt/bench"
)

// Header is the header for control units in C.
//
//go:embed c/lockstep.h
var Header []byte

// Example is a control unit in C on that header.
//
//go:embed c/tcu.c
var Example []byte

// Spec describes a program and its buses.
type Spec struct {
	Name     string        // name in messages, as in the bench file
	Path     string        // file of the program
	Args     []string      // arguments
	Dir      string        // working folder
	Hang     time.Duration // longest time for an answer, real time
	Bench    string        // name of the bench
	PeriodNs int64         // period of the grid, ns
	Buses    []Bus         // buses of the bench
	CPU      int           // CPU that the program must not use, that of the loop; < 0: none

	// onlyChild means that every process below this one comes from the program.
	onlyChild bool
}

// Bus is a bus of the program.
type Bus struct {
	Name      string
	Interface string // interface of the host, or a log; "": the socket of the program carries the bus
	BitRate   uint32 // nominal bit rate, bit/s; 0: not known
}

// SpecOf returns the program of a bench. inSocket reports whether the socket carries a bus; other buses
// are CAN interfaces.
func SpecOf(b *bench.Bench, inSocket func(bus int) bool) (s Spec, err error) {
	p := b.Program
	s = Spec{Name: b.Unit.Text, Hang: time.Duration(p.HangNs), Bench: b.Name, PeriodNs: b.PeriodNs, CPU: -1}
	if s.Path, s.Dir, err = b.ProgramFile(); err != nil {
		return s, err
	}
	for _, arg := range p.Args[1:] {
		s.Args = append(s.Args, arg.Text)
	}
	for i, bus := range b.Buses {
		to := Bus{Name: bus.Name.Text, BitRate: uint32(bus.BitRate)}
		if !inSocket(i) {
			to.Interface = bus.Interface.Text
		}
		s.Buses = append(s.Buses, to)
	}
	return s, nil
}

// hasSocket reports whether the program has a socket.
func (s *Spec) hasSocket() bool {
	return slices.ContainsFunc(s.Buses, func(b Bus) bool { return b.Interface == "" })
}

// interfaces lists the buses of the program on interfaces of the host.
func (s *Spec) interfaces() []Bus {
	return slices.DeleteFunc(slices.Clone(s.Buses), func(b Bus) bool {
		return b.Interface == "" || !bench.IsHostInterface(b.Interface)
	})
}

// socketFD is the descriptor of the program's socket.
const socketFD = 3

// env returns the environment that tells the program its buses. python-can takes its default bus from
// CAN_INTERFACE and CAN_CHANNEL.
func (s *Spec) env() (list []string) {
	var names []string
	for _, bus := range s.interfaces() {
		names = append(names, bus.Name+"="+bus.Interface)
	}
	if list = []string{"LOCKSTEP_BUSES=" + strings.Join(names, ",")}; !s.hasSocket() {
		return append(list, "CAN_INTERFACE=socketcan", "CAN_CHANNEL="+s.interfaces()[0].Interface)
	}
	first := slices.IndexFunc(s.Buses, func(b Bus) bool { return b.Interface == "" })
	return append(list, fmt.Sprintf("LOCKSTEP_FD=%d", socketFD),
		"CAN_INTERFACE=lockstep", "CAN_CHANNEL="+s.Buses[first].Name)
}

// at names a tick with its time.
func (s *Spec) at(tick int64) string {
	return fmt.Sprintf("tick %d (%.6g s)", tick, float64(tick*s.PeriodNs)/1e9)
}

// counts are the counts of a program with a socket.
type counts struct {
	sent     int64 // frames of the program that a bus took
	received int64 // frames given to the program
	dropped  int64 // frames of the program that a bus did not take
	unread   int64 // frames that the socket did not take, because the program did not read it
}

const countsFormat = "%d frames sent, %d received, %d dropped by a full bus, %d not read by the program"

func (c *counts) String() string {
	return fmt.Sprintf(countsFormat, c.sent, c.received, c.dropped, c.unread)
}

// Lost reads the last line of a program with a socket. It returns how many frames were lost between the
// program and its buses; ok: the line has the counts, and frames in both directions.
func Lost(line string) (dropped, unread int64, ok bool) {
	var c counts
	_, text, _ := strings.Cut(line, ": ")
	_, err := fmt.Sscanf(text, countsFormat, &c.sent, &c.received, &c.dropped, &c.unread)
	return c.dropped, c.unread, err == nil && c.sent > 0 && c.received > 0
}
