package unit

import (
	"encoding/binary"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
)

// Identifiers of the diagnosis of all units but those on SAE J1939: 11 bits, normal addressing.
const (
	idDiagnosisRequest  = 0x7E1
	idDiagnosisResponse = 0x7E9
	idDiagnosisToAll    = 0x7DF
)

// IdentifierOfTime is the data identifier of the time since the operation cycle began, ms in 32 bits.
const IdentifierOfTime = 0x1020

// Operation is the fault memory of a unit with its operation cycle, which begins when the unit wakes up, and with a
// hard reset.
type Operation struct {
	Memory *diagnosis.Memory

	base       *Base
	cycleStart time.Time
	sameCycle  bool // the next wake-up goes on with the operation cycle
}

// observed is the number of cycles for which one result of a test counts at most: the cycle at hand, and one missed
// while the unit was late.
const observed = 2

// NewOperation returns a fault memory with trouble codes. A stored code is logged; limp follows the text of a code with
// limp-home.
func NewOperation(b *Base, codes []diagnosis.Code, limp string) Operation {
	m := diagnosis.NewMemory(codes, observed*b.kind.Period)
	m.Notify = func(c diagnosis.Code) {
		note := ""
		if c.Limp {
			note = limp
		}
		b.Logf("%.2f s: %s%s", b.Elapsed(), c.Text, note)
	}
	return Operation{Memory: m, base: b}
}

// Serve gives the unit a diagnosis server. It completes the configuration with the bus, the memory, the name of the
// unit and, where they are missing, with Reset and the time since the operation cycle began.
func (o *Operation) Serve(c diagnosis.Config) {
	b := o.base
	c.Request, c.Response, c.Functional = idDiagnosisRequest, idDiagnosisResponse, idDiagnosisToAll
	c.Send = func(id uint32, data [8]byte) error { return b.Send(can.Frame{ID: id, Length: 8, Data: data}) }
	c.Memory, c.Name, c.Software = o.Memory, b.kind.Name, b.kind.Name+" 1.0"
	if c.Reset == nil {
		c.Reset = o.Restart
	}
	c.Identifiers = append(c.Identifiers, diagnosis.Identifier{ID: IdentifierOfTime, Read: func() []byte {
		return binary.BigEndian.AppendUint32(nil, uint32(o.InCycle().Milliseconds()))
	}})
	b.Server = diagnosis.New(c)
}

// InCycle returns the time from the begin of the operation cycle to the last cycle of the unit.
func (o *Operation) InCycle() time.Duration { return o.base.LastCycle.Sub(o.cycleStart) }

// BeginCycle begins an operation cycle at a wake-up, unless a soft reset has put the unit to sleep.
func (o *Operation) BeginCycle(now time.Time) {
	if !o.sameCycle {
		o.Memory.BeginCycle()
		o.cycleStart = now
	}
	o.sameCycle = false
}

// Restart lets the unit sleep until its next wake-up frame; kind is that of the reset. A hard reset and key off and on
// end the operation cycle.
func (o *Operation) Restart(kind byte) {
	o.base.Awake = false
	o.sameCycle = kind == diagnosis.SoftReset
}

// StoredCodes lists the codes with a failure since the memory was cleared, "; trouble codes P0705", for the last line
// of a unit.
func (o *Operation) StoredCodes() (text string) {
	for i, c := range o.Memory.Stored() {
		if i == 0 {
			text = "; trouble codes"
		}
		text += " " + c.Name()
	}
	return text
}
