package j1939

import (
	"encoding/binary"

	"lockstep/io/can"
)

// State is how a node stands to its address.
type State uint8

// The states of a node.
const (
	Silent  State = iota // it has not begun
	Waiting              // it has claimed, and may not send yet
	Held                 // the address is its own
	Lost                 // another node has it; this one may send nothing but that it cannot claim
)

// String returns the state as a word.
func (s State) String() string { return [...]string{"silent", "waiting", "held", "lost"}[s&3] }

// Node claims one address for one NAME and keeps to it: the messages it is for are
// bound to it, so it does not move to another one. Instants are ns on any one clock.
//
//	Begin           the claim goes out; it waits
//	Hear, a claim   for its address with a higher NAME: it claims again. With a lower
//	                one, or its own: it has lost, and says so after a while
//	Hear, a request for claims: it claims again, or says that it has lost
//	Due             what is to go out by now, and the end of the wait
type Node struct {
	Name    Name
	Address uint8 // 0 to 253
	State   State
	Rival   Name // of the node that has the address; valid in Lost

	ready  int64 // when a wait is over
	excuse int64 // when it says that it cannot claim; 0: it need not
}

// Wait is how long a claim must stand before the address is used, ns; Delay the most
// until a node says that it cannot claim: SAE J1939-81, 4.4.3.3 and 4.2.2.3.
const (
	Wait  = 250e6
	Delay = 153e6
)

// Begin claims the address; the frame must go out.
func (n *Node) Begin(now int64) can.Frame {
	n.State, n.ready, n.excuse = Waiting, now+Wait, 0
	return n.claim(n.Address)
}

// Hear takes a frame from the bus; the answer, if there is one, must go out.
func (n *Node) Hear(f *can.Frame, now int64) (answer can.Frame, ok bool) {
	id := ParseID(f.ID)
	switch {
	case n.State == Silent || f.ID&can.EFF == 0 || f.ID&(can.RTR|can.ERR) != 0:
	case id.PGN == PGNClaim && id.Source == n.Address && f.Len == 8:
		return n.contend(Name(binary.LittleEndian.Uint64(f.Data[:])), now)
	case id.PGN == PGNRequest && asks(f):
		return n.asked(&id, now)
	}
	return can.Frame{}, false
}

// contend decides between this node and another one that claims its address.
func (n *Node) contend(other Name, now int64) (answer can.Frame, ok bool) {
	switch {
	case n.State == Lost:
		n.Rival = other
		return can.Frame{}, false
	case n.Name < other:
		if n.State == Waiting {
			n.ready = now + Wait
		}
		return n.claim(n.Address), true
	}
	n.State, n.Rival = Lost, other
	n.excuse = n.later(now)
	return can.Frame{}, false
}

// asks tells whether a request is one for claims.
func asks(f *can.Frame) bool {
	return f.Len >= 3 && uint32(f.Data[0])|uint32(f.Data[1])<<8|uint32(f.Data[2])<<16 == PGNClaim
}

// asked answers a request to all, or to this node.
func (n *Node) asked(id *ID, now int64) (answer can.Frame, ok bool) {
	switch {
	case n.State == Lost:
		if id.Destination == Global && n.excuse == 0 {
			n.excuse = n.later(now)
		}
	case id.Destination == Global || id.Destination == n.Address:
		return n.claim(n.Address), true
	}
	return can.Frame{}, false
}

// later is when to say that the address is lost. All that have lost one send with the
// identifier of address 254: the NAME spreads them, so that they do not collide.
func (n *Node) later(now int64) int64 {
	spread := uint64(n.Name) * 0x9E3779B97F4A7C15 // Knuth's multiplicative hash, 64 bits
	return now + 1 + int64(spread>>11)%Delay
}

// Due is to be called now and again, every 50 ms or so: it ends the wait, and what it
// returns must go out.
func (n *Node) Due(now int64) (f can.Frame, ok bool) {
	if n.State == Waiting && now >= n.ready {
		n.State = Held
	}
	if n.State == Lost && n.excuse != 0 && now >= n.excuse {
		n.excuse = 0
		return n.claim(Null), true
	}
	return can.Frame{}, false
}

// claim is the frame that claims an address; from Null it says that none can be.
func (n *Node) claim(from uint8) can.Frame {
	f := can.Frame{ID: ID{Priority: 6, PGN: PGNClaim, Destination: Global, Source: from}.Bits(), Len: 8}
	binary.LittleEndian.PutUint64(f.Data[:], uint64(n.Name))
	return f
}
