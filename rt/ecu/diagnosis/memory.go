package diagnosis

import (
	"slices"
	"strings"
	"time"
)

// Status bits of a trouble code, ISO 14229-1, annex D.
const (
	TestFailed             = 1 << iota
	FailedThisCycle        // testFailedThisOperationCycle
	Pending                // pendingDTC
	Confirmed              // confirmedDTC
	NotCompletedSinceClear // testNotCompletedSinceLastClear
	FailedSinceClear       // testFailedSinceLastClear
	NotCompletedThisCycle  // testNotCompletedThisOperationCycle
	WarningLamp            // warningIndicatorRequested

	untested = NotCompletedSinceClear | NotCompletedThisCycle
)

const (
	agingCycles   = 40 // operation cycles without a failure after which a confirmed code is erased
	healingCycles = 3  // tested operation cycles without a failure after which the lamp goes off
)

// Code is a trouble code that a unit can store.
type Code struct {
	Number uint32        // 3 bytes: code of SAE J2012 and failure type; in SAE J1939 SPN<<5 | FMI
	Text   string        // name and what failed, like "P0730 incorrect gear ratio"
	Fail   time.Duration // time for which the fault must be present, > 0
	Pass   time.Duration // time for which it must be absent, > 0
	Trips  int           // operation cycles with a failure until the code is confirmed, >= 1
	Limp   bool          // the unit is in limp-home until the end of the operation cycle
}

// Name is the text up to the words: "P0730", "SPN 523 FMI 7".
func (c Code) Name() string {
	words := strings.Fields(c.Text)
	if words[0] == "SPN" {
		return strings.Join(words[:4], " ")
	}
	return words[0]
}

// entry is a trouble code with its state.
type entry struct {
	Code
	status      byte
	level       time.Duration // from -Pass (passed) to Fail (failed)
	trips       int           // consecutive tested cycles with a failure
	healed      int           // consecutive tested cycles without a failure
	aged        int           // operation cycles without a failure since the code was confirmed
	occurrences int           // failures since the memory was cleared
	permanent   bool          // confirmed, and not yet proved healed; clearing does not erase it
	first, last []byte        // snapshots at the first and at the last failure; nil: none
}

// Memory is the fault memory of a unit. It outlives a reset and the ignition, but not the process.
// The time of a test that neither fails nor passes is not reported and counts for nothing.
type Memory struct {
	list    []entry
	longest time.Duration // longest time for which one result counts
	frozen  bool          // results of tests are ignored: ControlDTCSetting
	begun   bool          // an operation cycle has begun
	Capture func() []byte // values of the snapshot at a failure
	Notify  func(c Code)  // called at a failure; nil: nobody
}

// NewMemory returns an empty memory for the codes. One result counts for the time longest at most.
func NewMemory(codes []Code, longest time.Duration) *Memory {
	m := &Memory{longest: longest}
	for _, c := range codes {
		m.list = append(m.list, entry{Code: c, status: untested})
	}
	return m
}

// Report takes the result of a test that holds for the time since the previous result, dt, but not for cycles that the
// unit has missed: it did not observe them. A fault is stored once it has been present for Code.Fail; presence and
// absence are counted against each other.
func (m *Memory) Report(number uint32, failed bool, dt time.Duration) {
	e := m.find(number)
	if e == nil || m.frozen {
		return
	}
	if dt = min(dt, m.longest); failed {
		e.level = min(max(e.level, 0)+dt, e.Fail)
	} else {
		e.level = max(e.level-dt, -e.Pass)
	}
	switch {
	case e.level == e.Fail:
		m.fail(e)
	case e.level == -e.Pass:
		e.status &^= TestFailed | untested
	}
}

// Fail stores a fault at once: the test of it ends with one result.
func (m *Memory) Fail(number uint32) {
	if e := m.find(number); e != nil && !m.frozen {
		e.level = e.Fail
		m.fail(e)
	}
}

// fail stores a failure, unless its test has failed in this operation cycle and has not passed since.
func (m *Memory) fail(e *entry) {
	if e.status&(TestFailed|FailedThisCycle) == TestFailed|FailedThisCycle {
		return
	}
	e.occurrences = min(e.occurrences+1, 255)
	if m.Capture != nil {
		e.last = m.Capture()
		if e.first == nil {
			e.first = e.last
		}
	}
	if e.status&FailedThisCycle == 0 {
		e.trips++
	}
	e.status = e.status&^untested | TestFailed | FailedThisCycle | Pending | FailedSinceClear
	e.healed, e.aged = 0, 0
	if e.trips >= e.Trips {
		e.status |= Confirmed | WarningLamp
		e.permanent = true
	}
	if m.Notify != nil {
		m.Notify(e.Code)
	}
}

// BeginCycle ends the operation cycle at hand and begins the next one: codes heal and age.
func (m *Memory) BeginCycle() {
	for i := range m.list {
		e := &m.list[i]
		if m.begun && e.status&FailedThisCycle == 0 {
			e.endGoodCycle()
		}
		e.status = e.status&^FailedThisCycle | NotCompletedThisCycle
		e.level = 0
	}
	m.begun = true
}

// endGoodCycle ends an operation cycle without a failure. A cycle in which the test did not complete proves
// nothing for the lamp, but the code ages.
func (e *entry) endGoodCycle() {
	if e.status&NotCompletedThisCycle == 0 {
		e.status &^= Pending
		e.trips = 0
		if e.healed++; e.healed >= healingCycles || e.status&Confirmed == 0 {
			e.status &^= WarningLamp
			e.permanent = false
		}
	}
	if e.status&Confirmed == 0 || e.status&TestFailed != 0 {
		return
	}
	if e.aged++; e.aged >= agingCycles {
		e.status &^= Confirmed | WarningLamp | FailedSinceClear | Pending
		e.occurrences, e.aged, e.first, e.last = 0, 0, nil, nil
	}
}

// Clear erases the codes for which match holds: status, counters and snapshots.
func (m *Memory) Clear(match func(c Code) bool) {
	for i := range m.list {
		if e := &m.list[i]; match(e.Code) {
			*e = entry{Code: e.Code, status: untested, permanent: e.permanent}
		}
	}
}

// Numbers returns the codes that have a bit of mask in their status, in the order of the memory.
func (m *Memory) Numbers(mask byte) (list []uint32) {
	for _, e := range m.list {
		if e.status&mask != 0 {
			list = append(list, e.Number)
		}
	}
	return list
}

// All returns the codes of the unit.
func (m *Memory) All() (list []Code) {
	for _, e := range m.list {
		list = append(list, e.Code)
	}
	return list
}

// Stored returns the codes with a failure since the memory was cleared.
func (m *Memory) Stored() (list []Code) {
	for _, e := range m.list {
		if e.status&FailedSinceClear != 0 {
			list = append(list, e.Code)
		}
	}
	return list
}

// Status returns the status bits of a code; 0 if the unit does not have it.
func (m *Memory) Status(number uint32) byte {
	if e := m.find(number); e != nil {
		return e.status
	}
	return 0
}

// Occurrences returns how often a code has failed since the memory was cleared, at most 255.
func (m *Memory) Occurrences(number uint32) int {
	if e := m.find(number); e != nil {
		return e.occurrences
	}
	return 0
}

// LimpHome reports whether a failure of this operation cycle keeps the unit in limp-home.
func (m *Memory) LimpHome() bool {
	return slices.ContainsFunc(m.list, func(e entry) bool { return e.Limp && e.status&FailedThisCycle != 0 })
}

// find returns a code; nil if the unit does not have it.
func (m *Memory) find(number uint32) *entry {
	for i := range m.list {
		if m.list[i].Number == number {
			return &m.list[i]
		}
	}
	return nil
}

// detection is the fault detection counter of a code: -128 passed, 127 failed.
func (e *entry) detection() int8 {
	if e.level < 0 {
		return int8(128 * e.level / e.Pass)
	}
	return int8(127 * e.level / e.Fail)
}
