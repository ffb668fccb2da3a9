package uds

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kinds of resets: ISO 14229-1, 9.3.
const (
	HardReset  = 1
	KeyOffOn   = 2
	SoftReset  = 3
	startRoute = 1
)

// Session enters a session: 1 default, 2 programming, 3 extended.
func (t *Tester) Session(kind byte) error {
	_, err := t.Ask(SessionControl, kind&^suppress)
	return err
}

// Reset resets the unit.
func (t *Tester) Reset(kind byte) error {
	_, err := t.Ask(ECUReset, kind&^suppress)
	return err
}

// Present says that the tester is present, and wants no answer.
func (t *Tester) Present() error {
	_, err := t.Ask(TesterPresent, suppress)
	return err
}

// Communication switches the unit's own messages on or off: ISO 14229-1, 10.5. Control 0 enables receiving and
// sending, 3 disables both; messages 1 are normal ones, 2 those of network management, 3 both.
func (t *Tester) Communication(control, messages byte) error {
	_, err := t.Ask(CommunicationControl, control&^suppress, messages)
	return err
}

// DTCSetting lets the unit update its trouble codes, or not.
func (t *Tester) DTCSetting(on bool) error {
	kind := byte(2)
	if on {
		kind = 1
	}
	_, err := t.Ask(ControlDTCSetting, kind)
	return err
}

// ReadData returns the bytes of a data identifier.
func (t *Tester) ReadData(id uint16) ([]byte, error) {
	a, err := t.Ask(ReadData, byte(id>>8), byte(id))
	if err != nil {
		return nil, err
	}
	return a[3:], nil
}

// WriteData writes the bytes of a data identifier.
func (t *Tester) WriteData(id uint16, data []byte) error {
	_, err := t.Ask(append([]byte{WriteData, byte(id >> 8), byte(id)}, data...)...)
	return err
}

// Control takes over an input or an output of the unit: ISO 14229-1, 13.2. Parameter 0 returns control to the unit,
// 1 resets, 2 freezes, 3 sets it to a state. It returns the state that the unit answers.
func (t *Tester) Control(id uint16, parameter byte, state []byte) ([]byte, error) {
	a, err := t.Ask(append([]byte{InputOutputControl, byte(id >> 8), byte(id), parameter}, state...)...)
	switch {
	case err != nil:
		return nil, err
	case a[3] != parameter:
		return nil, fmt.Errorf("answer %s has the parameter 0x%02X, want 0x%02X", Bytes(a), a[3], parameter)
	}
	return a[4:], nil
}

// Routine starts (1) or stops (2) a routine, or reads its results (3), and returns the bytes of its status.
func (t *Tester) Routine(kind byte, id uint16, option []byte) ([]byte, error) {
	a, err := t.Ask(append([]byte{RoutineControl, kind &^ suppress, byte(id >> 8), byte(id)}, option...)...)
	if err != nil {
		return nil, err
	}
	return a[4:], nil
}

// Unlock gets the access of a security level, an odd number: key makes the key of a seed. A seed of zeros says that
// the unit is unlocked.
func (t *Tester) Unlock(level byte, key func(level byte, seed []byte) ([]byte, error)) error {
	if level%2 == 0 || level >= suppress {
		return fmt.Errorf("security level 0x%02X: the level of a seed is odd and less than 0x80", level)
	}
	a, err := t.Ask(SecurityAccess, level)
	if err != nil {
		return err
	}
	seed := a[2:]
	if len(seed) == 0 {
		return errors.New("the unit sent a seed without bytes")
	}
	if isZero(seed) {
		return nil
	}
	k, err := key(level, seed)
	if err != nil {
		return err
	}
	a, err = t.Ask(append([]byte{SecurityAccess, level + 1}, k...)...)
	if err == nil && len(a) != 2 {
		err = fmt.Errorf("answer %s to a key has %d bytes, want 2", Bytes(a), len(a))
	}
	return err
}

func isZero(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}

// Clear clears the trouble codes of a group; AllDTCs are all.
func (t *Tester) Clear(group uint32) error {
	_, err := t.Ask(append([]byte{ClearDTC}, code(group)...)...)
	return err
}

// CountDTCs returns how many trouble codes have one of the bits of a status mask.
func (t *Tester) CountDTCs(mask Status) (int, error) {
	a, err := t.Ask(ReadDTC, 0x01, byte(mask))
	if err != nil {
		return 0, err
	}
	if len(a) != 6 {
		return 0, fmt.Errorf("answer %s has %d bytes, want 6", Bytes(a), len(a))
	}
	return int(binary.BigEndian.Uint16(a[4:])), nil
}

// DTCs returns the trouble codes that have one of the bits of a status mask.
func (t *Tester) DTCs(mask Status) ([]DTC, error) {
	a, err := t.Ask(ReadDTC, 0x02, byte(mask))
	if err != nil {
		return nil, err
	}
	return ParseDTCs(a)
}

// SupportedDTCs returns all trouble codes that the unit knows.
func (t *Tester) SupportedDTCs() ([]DTC, error) {
	a, err := t.Ask(ReadDTC, 0x0A)
	if err != nil {
		return nil, err
	}
	return ParseDTCs(a)
}

// Snapshots returns the freeze frames of a trouble code. size returns the number of bytes of a data identifier, 0 if
// it is not known: then the bytes of the record are left undivided.
func (t *Tester) Snapshots(dtc uint32, size func(id uint16) int) (DTC, []Record, error) {
	a, err := t.Ask(append(append([]byte{ReadDTC, 0x04}, code(dtc)...), 0xFF)...)
	if err != nil {
		return DTC{}, nil, err
	}
	return parseSnapshots(a, dtc, size)
}

// Extended returns the extended data of a trouble code, undivided: record numbers and data.
func (t *Tester) Extended(dtc uint32) (DTC, []byte, error) {
	a, err := t.Ask(append(append([]byte{ReadDTC, 0x06}, code(dtc)...), 0xFF)...)
	if err != nil {
		return DTC{}, nil, err
	}
	return parseDTCRecord(a, dtc)
}
