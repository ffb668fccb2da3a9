package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/io/can"
)

// BusState describes a bus on an interface of this host: its states, error frames and changes.
type BusState struct {
	Bus       string `json:"bus"`
	Interface string `json:"interface"`

	// state at the end: error-active, error-warning, error-passive, bus-off, stopped, down or gone;
	// up for an interface without a controller
	State string `json:"state"`

	Seconds  map[string]float64 `json:"seconds"`             // time in each state during the run, s
	TxErrors *int               `json:"tx_errors,omitempty"` // last known transmit error counter; nil: unknown
	RxErrors *int               `json:"rx_errors,omitempty"` // last known receive error counter; nil: unknown

	ErrorFrames uint64 `json:"error_frames"`        // error frames read, the source of ErrorCounts
	Unread      uint64 `json:"error_frames_unread"` // error frames lost because they came too fast

	can.ErrorCounts

	Changes []BusChange `json:"changes,omitempty"` // changes of state; at most 1000 for all buses
}

// shownChanges is how many changes of a bus the text report lists.
const shownChanges = 6

// Lines formats the bus for the text report; nil for a bus without errors or changes.
func (v *BusState) Lines() (list []string) {
	if v.ErrorFrames == 0 && len(v.Changes) == 0 && (v.State == BusUp || v.State == can.Active.String()) {
		return nil
	}
	var spent []string
	for _, state := range slices.Sorted(maps.Keys(v.Seconds)) {
		spent = append(spent, fmt.Sprintf("%s %.3f s", state, v.Seconds[state]))
	}
	now := v.State
	if v.TxErrors != nil {
		now += fmt.Sprintf(" with %d transmit errors, %d receive errors", *v.TxErrors, *v.RxErrors)
	}
	list = append(list, fmt.Sprintf("%s on %s: %s; at the end %s", v.Bus, v.Interface, strings.Join(spent, ", "), now))
	if v.ErrorFrames+v.Unread > 0 {
		list = append(list, v.counts())
	}
	for i, c := range v.Changes {
		if i == shownChanges {
			list = append(list, fmt.Sprintf("and %d more changes", len(v.Changes)-i))
			break
		}

		_, text, _ := strings.Cut(c.Text, "): ")
		list = append(list, fmt.Sprintf("%.3f s: %s", c.At, text))
	}

	return list
}

// counts formats what the error frames reported.
func (v *BusState) counts() string {
	lost := "arbitration lost"
	if v.LostBit > 0 {
		lost += fmt.Sprintf(" (last in bit %d)", v.LostBit)
	}
	parts := nonZero(
		count{"error-warning", v.Warnings}, count{"error-passive", v.Passives}, count{"bus-off", v.Offs},
		count{"restarted", v.Restarts}, count{lost, v.Arbitration}, count{"not acknowledged", v.NoAck},
		count{"bus errors", v.ErrorCounts.Bus}, count{"transmit timeouts", v.TxTimeout},
		count{"controller receive buffer full", v.RxOverflow}, count{"controller transmit buffer full", v.TxOverflow},
		count{"transceiver errors", v.Transceiver}, count{"not read because they came too fast", v.Unread},
	)
	return fmt.Sprintf("%d error frames: %s", v.ErrorFrames, strings.Join(parts, ", "))
}

// BusUp is the state of an interface that is up and reports no controller state.
const BusUp = "up"

// BusChange is a change of a bus's state, or an action on the bus.
type BusChange struct {
	At    float64 `json:"at_s"`  // simulated time, s; 0: before the first tick
	Tick  int64   `json:"tick"`  // tick at that time; 0: before the first tick
	State string  `json:"state"` // state since the change
	Text  string  `json:"text"`  // description, beginning with "bus NAME (INTERFACE): "

	Bus  string `json:"-"` // name of the bus
	Time int64  `json:"-"` // real time, ns since 1970
}
