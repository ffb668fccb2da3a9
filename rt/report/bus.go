package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/io/can"
)

// BusState is how a bus that is an interface of this host fared.
type BusState struct {
	Bus       string `json:"bus"`
	Interface string `json:"interface"`

	// at the end: error-active, error-warning, error-passive, bus-off, stopped; up, where there is no
	// controller; down; gone
	State string `json:"state"`

	Seconds  map[string]float64 `json:"seconds"`
	TxErrors *int               `json:"tx_errors,omitempty"` // the controller's error counters, as it told them last
	RxErrors *int               `json:"rx_errors,omitempty"`

	ErrorFrames uint64 `json:"error_frames"`        // by which the supervisor knows what follows
	Unread      uint64 `json:"error_frames_unread"` // came faster than it reads them, and count for nothing

	can.ErrorCounts

	Changes []BusChange `json:"changes,omitempty"` // of all buses a thousand are kept
}

// shownChanges is how many changes of a bus the report in words has.
const shownChanges = 6

// Lines are the bus in words; none if there is nothing to say of it.
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
		now += fmt.Sprintf(" with %d errors in sending, %d in receiving", *v.TxErrors, *v.RxErrors)
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

// counts says what was in the error frames.
func (v *BusState) counts() string {
	lost := "arbitration lost"
	if v.LostBit > 0 {
		lost += fmt.Sprintf(" (last in bit %d)", v.LostBit)
	}
	parts := nonZero(
		count{"error-warning", v.Warnings}, count{"error-passive", v.Passives}, count{"bus-off", v.Offs},
		count{"restarted", v.Restarts}, count{lost, v.Arbitration}, count{"not acknowledged", v.NoAck},
		count{"bus errors", v.ErrorCounts.Bus}, count{"timeouts in sending", v.TxTimeout},
		count{"receive buffer of the controller full", v.RxOverflow}, count{"its send buffer full", v.TxOverflow},
		count{"errors of the transceiver", v.Transceiver}, count{"came too fast and were not read", v.Unread},
	)
	return fmt.Sprintf("%d error frames: %s", v.ErrorFrames, strings.Join(parts, ", "))
}

// BusUp is how a bus stands that is up and whose interface says nothing of a controller.
const BusUp = "up"

// BusChange is an instant at which a bus began to stand otherwise, or something was
// done about it.
type BusChange struct {
	At    float64 `json:"at_s"` // simulated time; 0: before the first tick
	Tick  int64   `json:"tick"`
	State string  `json:"state"`
	Text  string  `json:"text"`

	Bus  string `json:"-"`
	Time int64  `json:"-"` // ns since 1970
}
