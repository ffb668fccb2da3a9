package network

import (
	"errors"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// Mode is a state of the network management: AUTOSAR SWS CanNm R21-11, chapter 7.2.
type Mode uint8

// The modes. From RepeatMessage on the node is in Network Mode.
const (
	BusSleep Mode = iota
	PrepareBusSleep
	RepeatMessage
	NormalOperation
	ReadySleep
)

// String returns the mode in words.
func (m Mode) String() string {
	if m > ReadySleep {
		return "unknown"
	}
	return [...]string{"bus sleep", "prepare bus sleep", "repeat message", "normal operation", "ready sleep"}[m]
}

// Bits of the control bit vector: SWS_CanNm_00045.
const (
	RepeatMessageRequest = 1 << 0
	ActiveWakeup         = 1 << 4
)

// NoByte is the position of a byte that the message does not have.
const NoByte = 255

// NodePlan is the bench as a node of the network management of a bus. Times are in ticks.
type NodePlan struct {
	Bus     int
	Message int          // index in Map.Tx of the node's own NM message
	From    []bool       // by index in Map.Rx: an NM message of another node
	Awake   [States]bool // the node requests the network

	ID                  uint8 // node identifier
	IDByte, ControlByte uint8 // positions in the NM message: CanNmPduNidPosition, CanNmPduCbvPosition; NoByte: none

	Cycle          int64 // CanNmMsgCycleTime; > 0
	Offset         int64 // CanNmMsgCycleOffset: from the entry of Repeat Message to the first message; >= 0
	Repeat         int64 // CanNmRepeatMessageTime; >= 0
	Timeout        int64 // CanNmTimeoutTime, larger than Cycle
	Wait           int64 // CanNmWaitBusSleepTime; > 0
	Immediate      int64 // CanNmImmediateNmTransmissions, after an active wake-up; >= 0
	ImmediateCycle int64 // CanNmImmediateNmCycleTime; > 0 if Immediate is
}

func (p *NodePlan) check(maps []*sigmap.Map) error {
	switch {
	case p.Bus >= len(maps) || p.Message >= len(maps[p.Bus].Tx) || len(p.From) != len(maps[p.Bus].Rx):
		return errors.New("network: an NM message does not exist")
	case p.Cycle < 1 || p.Timeout <= p.Cycle || p.Wait < 1 || p.Offset < 0 || p.Repeat < 0,
		p.Immediate < 0 || p.Immediate > 0 && p.ImmediateCycle < 1:
		return errors.New("network: a time of the network management is impossible")
	}
	return nil
}

// Node is the state machine of CanNm. Call Step at each grid point, Receive for each NM message received
// since the last Step, and Confirm when the bus has taken a message. Its numbers in comments are those of
// AUTOSAR SWS CanNm.
type Node struct {
	Mode     Mode
	Timeouts uint64 // NM timeouts while the node keeps the network awake: nobody else is there

	active     bool  // the node has woken the bus itself: bit ActiveWakeup
	received   bool  // an NM message came since the last Step
	requested  bool  // one of these had the bit RepeatMessageRequest
	timeout    int64 // tick at which the NM timeout passes
	repeatEnd  int64 // tick at which Repeat Message ends
	sleepAt    int64 // tick at which Bus-Sleep begins
	next       int64 // tick of the next message
	immediate  int64 // further messages in the immediate cycle
	sendingNow int64 // tick at which a message is to be sent; 0: none so far
}

// Receive takes an NM message of another node with its control bit vector.
//
//go:nosplit
func (n *Node) Receive(control uint8) {
	n.received = true
	n.requested = n.requested || control&RepeatMessageRequest != 0
}

// Confirm restarts the NM timeout: the bus has taken a message at tick k (SWS_CanNm_00099).
//
//go:nosplit
func (n *Node) Confirm(p *NodePlan, k int64) {
	if n.Awake() {
		n.timeout = k + p.Timeout
	}
}

// Awake reports whether the node is in Network Mode.
//
//go:nosplit
func (n *Node) Awake() bool { return n.Mode >= RepeatMessage }

// Control returns the control bit vector of the node's messages.
//
//go:nosplit
func (n *Node) Control() uint8 {
	if n.active {
		return ActiveWakeup
	}
	return 0
}

// Step advances the node to tick k. wanted: the bench requests the network.
//
//go:nosplit
func (n *Node) Step(p *NodePlan, k int64, wanted bool) {
	received, requested := n.received, n.requested
	n.received, n.requested = false, false
	if !n.Awake() {
		switch {
		case wanted: // SWS_CanNm_00129, 00123
			n.enterNetwork(p, k, true)
		case received: // passive start-up: SWS_CanNm_00127 with 00128, 00124
			n.enterNetwork(p, k, false)
		case n.Mode == PrepareBusSleep && k >= n.sleepAt: // SWS_CanNm_00115
			n.Mode = BusSleep
		}
	} else {
		if received { // SWS_CanNm_00098
			n.timeout = k + p.Timeout
		}
		n.stepNetworkMode(p, k, wanted, requested)
	}
	n.decideSending(p, k)
}

// stepNetworkMode advances a node that is in Network Mode.
//
//go:nosplit
func (n *Node) stepNetworkMode(p *NodePlan, k int64, wanted, requested bool) {
	switch {
	case n.Mode == RepeatMessage && k >= n.repeatEnd: // SWS_CanNm_00102, 00103, 00106
		n.Mode = ReadySleep
		if wanted {
			n.Mode = NormalOperation
		}
	case n.Mode == RepeatMessage:
	case requested: // SWS_CanNm_00119, 00111
		n.enterRepeat(p, k)
	case n.Mode == NormalOperation && !wanted: // SWS_CanNm_00118
		n.Mode = ReadySleep
	case n.Mode == ReadySleep && wanted: // SWS_CanNm_00110; without the offset: 00006
		n.Mode, n.next = NormalOperation, k
	}

	switch {
	case k < n.timeout:
	case n.Mode == ReadySleep: // SWS_CanNm_00109; the bit ActiveWakeup ends: 00402
		n.Mode, n.active, n.sleepAt = PrepareBusSleep, false, k+p.Wait
	default: // SWS_CanNm_00101, 00117
		n.Timeouts++
		n.timeout = k + p.Timeout
	}
}

// enterNetwork enters Network Mode. active: the bench has requested the network (SWS_CanNm_00401).
//
//go:nosplit
func (n *Node) enterNetwork(p *NodePlan, k int64, active bool) {
	n.active, n.timeout = active, k+p.Timeout // SWS_CanNm_00096
	n.enterRepeat(p, k)
	if n.immediate = 0; active && p.Immediate > 0 { // SWS_CanNm_00334
		n.next, n.immediate = k, p.Immediate
	}
}

// enterRepeat enters Repeat Message and restarts the messages (SWS_CanNm_00100, 00005).
//
//go:nosplit
func (n *Node) enterRepeat(p *NodePlan, k int64) {
	n.Mode, n.repeatEnd, n.next, n.immediate = RepeatMessage, k+p.Repeat, k+p.Offset, 0
}

// decideSending decides whether a message is sent at tick k. Ready Sleep sends none (SWS_CanNm_00108).
//
//go:nosplit
func (n *Node) decideSending(p *NodePlan, k int64) {
	if n.Mode != RepeatMessage && n.Mode != NormalOperation || k < n.next {
		return
	}
	n.sendingNow, n.next = k, k+p.Cycle
	if n.immediate > 0 {
		if n.immediate--; n.immediate > 0 {
			n.next = k + p.ImmediateCycle
		}
	}
}

// Sends reports whether the node sends its message at tick k.
//
//go:nosplit
func (n *Node) Sends(k int64) bool { return n.sendingNow == k }

// Fill writes node identifier and control bit vector into the node's message.
//
//go:nosplit
func (n *Node) Fill(p *NodePlan, f *can.Frame) {
	if p.IDByte < f.Len && int(p.IDByte) < len(f.Data) {
		f.Data[p.IDByte] = p.ID
	}
	if p.ControlByte < f.Len && int(p.ControlByte) < len(f.Data) {
		f.Data[p.ControlByte] = n.Control()
	}
}
