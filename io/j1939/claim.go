package j1939

import (
	"encoding/binary"

	"lockstep/io/can"
)

// State is the state of a node's address claim.
type State uint8

// The states of a node.
const (
	Silent  State = iota // Begin has not been called
	Waiting              // the claim is sent, the node may not use the address yet
	Held                 // the node owns the address
	Lost                 // another node owns the address; this one may only send "cannot claim"
)

// String returns the state in lower case.
func (s State) String() string { return [...]string{"silent", "waiting", "held", "lost"}[s&3] }

// Node claims one fixed address for one NAME: the messages of the bench are bound to the
// address, so the node never takes another one. Instants are ns on any one clock.
//
//	Begin             sends the claim; state Waiting
//	NoteSent          the claim is on the bus: the wait begins
//	Receive, a claim  of its address by a higher NAME: the node claims again. By a lower
//	                  or equal NAME: state Lost; "cannot claim" follows after a delay
//	Receive, a request for claims: the node claims again, or sends "cannot claim"
//	Poll              sends a delayed frame; changes Waiting to Held
type Node struct {
	Name    Name
	Address uint8 // address claimed, 0 to 253
	State   State
	Rival   Name // NAME of the node that owns the address; valid in state Lost

	waitEnd       int64 // end of state Waiting, ns
	onBus         bool  // the bus has taken the claim: NoteSent
	cannotClaimAt int64 // instant of the "cannot claim" frame, ns; 0: none is due
}

// ClaimWait is the time from a claim to the first use of the address, ns;
// CannotClaimDelay the longest delay of "cannot claim", ns: SAE J1939-81, 4.4.3.3 and
// 4.2.2.3.
const (
	ClaimWait        = 250e6
	CannotClaimDelay = 153e6
)

// Begin starts the claim; the caller sends the frame.
func (n *Node) Begin(now int64) can.Frame {
	n.State, n.waitEnd, n.onBus, n.cannotClaimAt = Waiting, now+ClaimWait, false, 0
	return n.claimFrame(n.Address)
}

// NoteSent restarts the wait of a claim: the bus has taken the frame only now. An answer to a request does not restart it.
func (n *Node) NoteSent(now int64) {
	if n.State == Waiting && !n.onBus {
		n.waitEnd, n.onBus = now+ClaimWait, true
	}
}

// Receive processes a frame of the bus; if ok, the caller sends the answer.
func (n *Node) Receive(f *can.Frame, now int64) (answer can.Frame, ok bool) {
	id := ParseID(f.ID)
	switch {
	case n.State == Silent || !isData(f):
	case id.PGN == PGNClaim && id.Source == n.Address && f.Len == 8:
		return n.resolveConflict(Name(binary.LittleEndian.Uint64(f.Data[:])), now)
	}
	if pgn, ok := Requested(f); n.State != Silent && ok && pgn == PGNClaim {
		return n.answerRequest(&id, now)
	}

	return can.Frame{}, false
}

// resolveConflict decides whether this node or the other one gets the address.
func (n *Node) resolveConflict(other Name, now int64) (answer can.Frame, ok bool) {
	switch {
	case n.State == Lost:
		n.Rival = other
		return can.Frame{}, false
	case n.Name < other:
		if n.State == Waiting {
			n.waitEnd, n.onBus = now+ClaimWait, false
		}
		return n.claimFrame(n.Address), true
	}

	n.State, n.Rival = Lost, other
	n.cannotClaimAt = n.cannotClaimTime(now)
	return can.Frame{}, false
}

// answerRequest answers a request for claims to all nodes, or to this node.
func (n *Node) answerRequest(id *ID, now int64) (answer can.Frame, ok bool) {
	switch {
	case n.State == Lost:
		if id.Destination == Global && n.cannotClaimAt == 0 {
			n.cannotClaimAt = n.cannotClaimTime(now)
		}
	case id.Destination == Global || id.Destination == n.Address:
		return n.claimFrame(n.Address), true
	}

	return can.Frame{}, false
}

// cannotClaimTime returns the instant at which to send "cannot claim", ns. All nodes send
// that frame with the identifier of address 254; a delay from the NAME avoids collisions.
func (n *Node) cannotClaimTime(now int64) int64 {
	spread := uint64(n.Name) * 0x9E3779B97F4A7C15 // Knuth's multiplicative hash, 64 bits
	return now + 1 + int64(spread>>11)%CannotClaimDelay
}

// Poll ends the wait and returns a delayed frame when one is due; if ok, the caller sends
// it. Call Poll about every 50 ms.
func (n *Node) Poll(now int64) (f can.Frame, ok bool) {
	if n.State == Waiting && now >= n.waitEnd {
		n.State = Held
	}
	if n.IsPending() && now >= n.cannotClaimAt {
		n.cannotClaimAt = 0
		return n.claimFrame(Null), true
	}

	return can.Frame{}, false
}

// IsPending reports whether a delayed frame is still to be sent.
func (n *Node) IsPending() bool { return n.State == Lost && n.cannotClaimAt != 0 }

// claimFrame returns the frame "address claimed"; from address Null it means "cannot claim".
func (n *Node) claimFrame(from uint8) can.Frame {
	f := can.Frame{ID: ID{Priority: 6, PGN: PGNClaim, Destination: Global, Source: from}.Bits(), Len: 8}
	binary.LittleEndian.PutUint64(f.Data[:], uint64(n.Name))
	return f
}
