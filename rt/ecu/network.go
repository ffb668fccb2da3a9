package ecu

import (
	"fmt"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
)

// Identifiers of the network management, as in automatic.dbc, and the unit's node in it.
const (
	idNMBench = 0x510
	idNMUnit  = 0x511
	unitNode  = 0x18
)

// Raw values of Pedals.ignition.
const (
	keyUnknown = iota
	keyOff
	keyStandby
	keyIgnition
	keyCrank
	keyRun
)

// Times of the network management, in cycles of 10 ms.
const (
	nmCycle  = 10  // between two messages
	nmRepeat = 50  // in Repeat Message
	nmSilent = 100 // NM timeout
	nmWait   = 50  // from the NM timeout to the sleep of the bus
)

// States of the network management: AUTOSAR SWS CanNm.
const (
	nmAsleep = iota
	nmPrepare
	nmAnnounce // Repeat Message
	nmNormal
	nmReady
)

// networkNode is the unit's part in AUTOSAR's network management, as a main function with timers that count down.
type networkNode struct {
	state                         int
	silent, announce, wait, cycle int // cycles left
	woken                         bool
	heard, asked                  bool // an NM message, and one with the repeat message request, since the last cycle
}

// run runs one cycle and reports whether the unit sends its NM message. wanted: the unit needs the network.
func (n *networkNode) run(wanted bool) (send bool) {
	heard, asked := n.heard, n.asked
	n.heard, n.asked = false, false
	for _, timer := range []*int{&n.silent, &n.announce, &n.wait, &n.cycle} {
		*timer = max(0, *timer-1)
	}
	if n.state <= nmPrepare {
		if n.state == nmPrepare && n.wait == 0 && !wanted && !heard {
			n.state = nmAsleep
		}
		if !wanted && !heard {
			return false
		}
		n.state, n.woken = nmAnnounce, wanted
		n.announce, n.silent, n.cycle = nmRepeat, nmSilent, 0
	} else if heard {
		n.silent = nmSilent
	}

	switch {
	case n.state == nmAnnounce && n.announce == 0 && wanted:
		n.state = nmNormal
	case n.state == nmAnnounce && n.announce == 0:
		n.state = nmReady
	case n.state != nmAnnounce && asked:
		n.state, n.announce, n.cycle = nmAnnounce, nmRepeat, 0
	case n.state == nmNormal && !wanted:
		n.state = nmReady
	case n.state == nmReady && wanted:
		n.state, n.cycle = nmNormal, 0
	}
	if n.silent == 0 {
		if n.silent = nmSilent; n.state == nmReady {
			n.state, n.woken, n.wait = nmPrepare, false, nmWait
		}
	}
	if n.state != nmAnnounce && n.state != nmNormal || n.cycle > 0 {
		return false
	}
	n.cycle, n.silent = nmCycle, nmSilent
	return true
}

// message returns the unit's NM message: node identifier and control bit vector.
func (n *networkNode) message() can.Frame {
	f := can.Frame{ID: idNMUnit, Length: 8}
	f.Data[0] = unitNode
	if n.woken {
		f.Data[1] = 1 << 4 // active wake-up
	}
	return f
}

// ignitionKey is what the unit knows of the ignition, and its part in the network. The unit works without: a bench
// that says nothing of the ignition leaves the key unknown.
type ignitionKey struct {
	networkNode
	key      int           // raw value of Pedals.ignition
	offAt    time.Time     // end of the ignition, valid if key is off or standby
	afterRun float64       // time from the end of the ignition to the sleep, s
	wakeUp   float64       // time at which the sleeping unit wakes up by itself, s; 0: never
	managed  bool          // the bench takes part in the network management
	begun    time.Time     // first cycle
	alarm    time.Duration // end of the wake-up by itself, since begun; 0: none
}

// isOff reports whether the bench has said that the ignition is off.
func (i *ignitionKey) isOff() bool { return i.key == keyOff || i.key == keyStandby }

// turn takes the state of the ignition.
func (i *ignitionKey) turn(to int, now time.Time) {
	was := i.isOff()
	if i.key = to; i.isOff() && !was {
		i.offAt = now
	}
	i.managed = i.managed || to != keyUnknown
}

// afterRunOver reports whether the unit must be silent.
func (i *ignitionKey) afterRunOver(now time.Time) bool {
	return i.isOff() && now.Sub(i.offAt).Seconds() >= i.afterRun
}

// network runs a cycle of the network management, asleep or not, and returns the frames to send.
func (s *automatic) network(now time.Time) []can.Frame {
	if s.begun.IsZero() {
		s.begun = now
	}
	if t := now.Sub(s.begun); s.wakeUp > 0 && s.alarm == 0 && !s.awake && t.Seconds() >= s.wakeUp {
		s.alarm, s.managed = t+time.Duration(s.afterRun*1e9), true
		fmt.Fprintf(s.log, "%s: %.2f s: wakes up by itself\n", s.name, t.Seconds())
	}
	if !s.managed || s.mute || s.server.Silent(diagnosis.NetworkManagement) {
		return nil
	}
	if !s.run(s.awake || now.Sub(s.begun) < s.alarm) {
		return nil
	}
	return []can.Frame{s.message()}
}

// sleepAfterRun puts the unit to sleep at the end of its after-run, and keeps it awake before.
func (s *automatic) sleepAfterRun() bool {
	now := s.lastCycle
	if !s.afterRunOver(now) || s.server.InSession() {
		if s.isOff() {
			s.last, s.fresh = now, true // without speeds it goes on to open its clutches
		}
		return false
	}
	fmt.Fprintf(s.log, "%s: %g s after the end of the ignition, nothing is sent\n", s.name, s.afterRun)
	s.awake = false
	s.counts.Cycles--
	return true
}
