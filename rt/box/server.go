package box

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"lockstep/io/wire"
	"lockstep/rt/ecu"
	"lockstep/sched"
)

// Server is the box of a virtual control unit in real time, on UDP. It answers to the address from which the last image
// came. Bench and box are on one host, so that the tick of an image is an instant on the clock of the box: late images
// do not move the edges. It is the ecu.Wires of the unit.
type Server struct {
	box      Box
	conn     *net.UDPConn
	arrived  chan arrival
	next     arrival // image whose tick is to come
	waits    bool    // next is one
	check    wire.Check
	peer     netip.AddrPort
	zero     int64 // begin of the clock of the unit, ns on CLOCK_MONOTONIC; 0: not known
	measured wire.Image
	buffer   [wire.Size]byte
}

// arrival is an image and its sender.
type arrival struct {
	image wire.Image
	from  netip.AddrPort
}

// Listen opens the box at "ADDRESS:PORT", an address of the loopback interface.
func Listen(address string) (*Server, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("box: %.60q is not ADDRESS:PORT of this host, like 127.0.0.1:5005", address)
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("box: %w: `ss -ulpn` shows by which process; use another port, also for the bench: -bus BUS=udp:ADDRESS:PORT", err)
	}
	if err != nil {
		return nil, fmt.Errorf("box: %w", err)
	}
	s := &Server{conn: conn, arrived: make(chan arrival, 64)}
	go s.read()
	return s, nil
}

// read passes on the images until the socket is closed. Images that nobody takes are dropped.
func (s *Server) read() {
	var buffer [wire.Size + 1]byte
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buffer[:])
		if err != nil {
			return
		}
		a := arrival{from: from}
		if !a.image.Decode(buffer[:n]) {
			continue
		}
		select {
		case s.arrived <- a:
		default:
		}
	}
}

// Drive gives the unit the lines and edges until now, an instant on the clock of the unit.
func (s *Server) Drive(u *ecu.Stepped, now time.Duration) {
	if s.zero == 0 {
		s.zero = sched.Now() - int64(now)
	}
	for s.waits || s.receive() {
		tick := time.Duration(s.next.image.Tick - s.zero)
		if tick > now {
			break
		}
		s.give(u, tick)
		s.box.Take(&s.next.image, tick)
		s.waits = false
	}
	s.box.SetLines(u)
	s.give(u, now)
}

// receive moves the next image of the bench into s.next and reports whether there was one.
func (s *Server) receive() bool {
	for range cap(s.arrived) {
		select {
		case s.next = <-s.arrived:
			if s.check.Accept(&s.next.image, 0) {
				s.waits, s.peer = true, s.next.from
				return true
			}
		default:
			return false
		}
	}
	return false
}

// give gives the unit the edges that come before an instant.
func (s *Server) give(u *ecu.Stepped, until time.Duration) {
	for _, e := range s.box.Edges(until) {
		u.Edge(e.Wheel, e.At, e.Word)
	}
}

// Measure sends the duties of the outputs as they are now.
func (s *Server) Measure(u *ecu.Stepped, now time.Duration) {
	if !s.peer.IsValid() {
		return
	}
	Measure(&s.measured, u)
	s.measured.Tick = int64(now)
	s.measured.Encode(&s.buffer)
	s.measured.Counter++
	_, _ = s.conn.WriteToUDPAddrPort(s.buffer[:], s.peer) // the bench counts what is lost
}

// Close closes the socket.
func (s *Server) Close() error { return s.conn.Close() }
