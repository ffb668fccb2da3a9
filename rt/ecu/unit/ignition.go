package unit

import (
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
)

// Identifiers of the network management, as in automatic.dbc, and the unit's node in it.
const (
	IDNMBench = 0x510 // frame to the unit
	IDNMUnit  = 0x511 // frame of the unit
	unitNode  = 0x18
)

// States of the ignition as the bench sends them.
const (
	KeyUnknown = iota // the bench says nothing of the ignition
	KeyOff
	KeyStandby
	KeyIgnition
	KeyCrank
	KeyRun
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
	f := can.Frame{ID: IDNMUnit, Length: 8}
	f.Data[0] = unitNode
	if n.woken {
		f.Data[1] = 1 << 4 // active wake-up
	}
	return f
}

// Ignition is what the unit knows of the ignition, and its part in the network. The unit works without: a bench
// that says nothing of the ignition leaves the key unknown.
//
// When the ignition ends, the unit goes on for its after-run, and then sleeps. Without the ignition no frame wakes it.
type Ignition struct {
	Key int // last state of the ignition

	base     *Base
	node     networkNode
	offAt    time.Time     // end of the ignition, valid if key is off or standby
	afterRun float64       // time from the end of the ignition to the sleep, s
	wakeUp   float64       // time at which the sleeping unit wakes up by itself, s; 0: never
	managed  bool          // the bench takes part in the network management
	begun    time.Time     // first cycle
	alarm    time.Duration // end of the wake-up by itself, since begun; 0: none
}

// NewIgnition returns the ignition of a unit with an after-run of 3 s.
func NewIgnition(b *Base) Ignition { return Ignition{base: b, afterRun: 3} }

// KeyParameters returns the parameters of the ignition.
func (i *Ignition) KeyParameters() []Parameter {
	return []Parameter{{"after_run", "s", 0, 3600, &i.afterRun}, {"wake_up", "s", 0, 1e4, &i.wakeUp}}
}

// IsOff reports whether the bench has said that the ignition is off.
func (i *Ignition) IsOff() bool { return i.Key == KeyOff || i.Key == KeyStandby }

// Turn takes the state of the ignition, and reports whether it ends a time without ignition. While the ignition is on,
// the state keeps the unit awake.
func (i *Ignition) Turn(to int, now time.Time) (begins bool) {
	was := i.IsOff()
	if i.Key = to; i.IsOff() && !was {
		i.offAt = now
	}
	i.managed = i.managed || to != KeyUnknown
	if i.base.Awake && to >= KeyIgnition {
		i.base.KeepAwake(now)
	}
	return was && !i.IsOff()
}

// ReceiveNM handles a message of the network management, IDNMBench.
func (i *Ignition) ReceiveNM(f *can.Frame) {
	if i.base.Server.Deaf(diagnosis.NetworkManagement) {
		return
	}
	i.base.Counts.Received++
	i.node.heard, i.managed = true, true
	i.node.asked = i.node.asked || f.Length > 1 && f.Data[1]&1 != 0
}

// Network runs a cycle of the network management, asleep or not, and returns the frames to send.
func (i *Ignition) Network(now time.Time) []can.Frame {
	if i.begun.IsZero() {
		i.begun = now
	}
	if t := now.Sub(i.begun); i.wakeUp > 0 && i.alarm == 0 && !i.base.Awake && t.Seconds() >= i.wakeUp {
		i.alarm, i.managed = t+time.Duration(i.afterRun*1e9), true
		i.base.Logf("%.2f s: wakes up by itself", t.Seconds())
	}
	if !i.managed || i.base.Mute || i.base.Server.Silent(diagnosis.NetworkManagement) {
		return nil
	}
	if !i.node.run(i.base.Awake || now.Sub(i.begun) < i.alarm) {
		return nil
	}
	return []can.Frame{i.node.message()}
}

// SleepAfterRun puts the unit to sleep at the end of its after-run, reports it and takes back the cycle. Before, a unit
// without ignition is kept awake, and a diagnostic session keeps it awake longer.
func (i *Ignition) SleepAfterRun() bool {
	if !i.IsOff() {
		return false
	}
	now := i.base.LastCycle
	if now.Sub(i.offAt).Seconds() < i.afterRun || i.base.Server.InSession() {
		i.base.KeepAwake(now)
		return false
	}
	i.base.Logf("%g s after the end of the ignition, nothing is sent", i.afterRun)
	i.base.Awake = false
	i.base.Counts.Cycles--
	return true
}
