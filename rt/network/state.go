package network

import (
	"fmt"
	"strings"
)

// State is the state of the ignition.
type State uint8

// The states, in the order in which a key passes them.
const (
	Off      State = iota // the key is out
	Standby               // the buses are awake, the ignition is off
	Ignition              // the ignition is on, the engine is at rest
	Crank                 // the starter turns the engine
	Run                   // the engine runs

	States = 5 // number of states
)

var stateNames = [States]string{"off", "standby", "ignition", "crank", "run"}

// String returns the name of the state, as files and commands have it.
func (s State) String() string {
	if s < States {
		return stateNames[s]
	}
	return fmt.Sprintf("ignition state %d", uint8(s))
}

// StateNames returns the names of the states, in their order.
func StateNames() []string { return stateNames[:] }

// ParseState returns the state called text; "on" is run.
func ParseState(text string) (State, error) {
	if text == "on" {
		return Run, nil
	}
	for i, name := range stateNames {
		if name == text {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%.40q is no ignition state; there are %s, and on for run", text, strings.Join(stateNames[:], ", "))
}

// SwitchRequest asks the door of a run to switch the ignition or the supply.
type SwitchRequest struct {
	State string `json:"state"` // state of the ignition; of the supply on, off or a voltage
}
