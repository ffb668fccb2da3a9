package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/sched"
)

// BusState is how a bus that is an interface of this host fared.
type BusState struct {
	Bus       string             `json:"bus"`
	Interface string             `json:"interface"`
	State     string             `json:"state"` // at the end: error-active, error-warning, error-passive, bus-off, stopped; up, where there is no controller; down; gone
	Seconds   map[string]float64 `json:"seconds"`
	TxErrors  *int               `json:"tx_errors,omitempty"` // the controller's error counters, as it told them last
	RxErrors  *int               `json:"rx_errors,omitempty"`

	ErrorFrames uint64 `json:"error_frames"`        // by which the supervisor knows what follows
	Unread      uint64 `json:"error_frames_unread"` // came faster than it reads them, and count for nothing

	Warnings    uint64 `json:"warnings"` // how often the controller became error-warning
	Passives    uint64 `json:"passives"` // and error-passive
	Offs        uint64 `json:"offs"`
	Restarts    uint64 `json:"restarts"`
	Arbitration uint64 `json:"arbitration_lost"`
	LostBit     int    `json:"arbitration_lost_bit,omitempty"` // the last time
	NoAck       uint64 `json:"no_acknowledgement"`
	BusErrors   uint64 `json:"bus_errors"`
	TxTimeout   uint64 `json:"tx_timeouts"`
	RxOverflow  uint64 `json:"controller_rx_overflows"`
	TxOverflow  uint64 `json:"controller_tx_overflows"`
	Transceiver uint64 `json:"transceiver_errors"`

	Changes []BusChange `json:"changes,omitempty"` // of all buses a thousand are kept
}

// report is how the buses fared.
func (s *busStates) report() (list []BusState) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.lines {
		s.account(w, sched.Now())
		e := &w.errors
		v := BusState{
			Bus: w.bus.Name.Text, Interface: w.bus.Interface.Text, State: w.stands, Seconds: map[string]float64{},
			ErrorFrames: e.Frames, Unread: w.unread, Warnings: e.Warnings, Passives: e.Passives, Offs: e.Offs, Restarts: e.Restarts,
			Arbitration: e.Arbitration, LostBit: e.LostBit, NoAck: e.NoAck, BusErrors: e.Bus,
			TxTimeout: e.TxTimeout, RxOverflow: e.RxOverflow, TxOverflow: e.TxOverflow, Transceiver: e.Transceiver,
		}
		if e.Counted {
			tx, rx := int(e.Tx), int(e.Rx)
			v.TxErrors, v.RxErrors = &tx, &rx
		}
		for state, ns := range w.spent {
			v.Seconds[state] = float64(ns) / 1e9
		}
		for _, c := range s.changes {
			if c.bus == w.bus.Name.Text {
				v.Changes = append(v.Changes, c)
			}
		}
		list = append(list, v)
	}
	return list
}

// shownChanges is how many changes of a bus the report in words has.
const shownChanges = 6

// lines are the bus in words; none if there is nothing to say of it.
func (v *BusState) lines() (list []string) {
	if v.ErrorFrames == 0 && len(v.Changes) == 0 && (v.State == busUp || v.State == can.Active.String()) {
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
	var parts []string
	part := func(what string, n uint64) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", what, n))
		}
	}
	part("error-warning", v.Warnings)
	part("error-passive", v.Passives)
	part("bus-off", v.Offs)
	part("restarted", v.Restarts)
	lost := "arbitration lost"
	if v.LostBit > 0 {
		lost += fmt.Sprintf(" (last in bit %d)", v.LostBit)
	}
	part(lost, v.Arbitration)
	part("not acknowledged", v.NoAck)
	part("bus errors", v.BusErrors)
	part("timeouts in sending", v.TxTimeout)
	part("receive buffer of the controller full", v.RxOverflow)
	part("its send buffer full", v.TxOverflow)
	part("errors of the transceiver", v.Transceiver)
	part("came too fast and were not read", v.Unread)
	return fmt.Sprintf("%d error frames: %s", v.ErrorFrames, strings.Join(parts, ", "))
}

// events are the changes since the last call, as a record keeps them.
func (s *busStates) events() (list []record.Event) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.changes[s.seen:] {
		list = append(list, record.Event{Kind: record.BusState, Tick: c.Tick, Time: c.time, Text: c.Text})
	}
	s.seen = len(s.changes)
	return list
}

// trouble is what is wrong with the buses right now, in at most 60 columns; "" is
// nothing.
func (s *busStates) trouble() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.lines {
		text := w.stands
		switch text {
		case busUp, can.Active.String():
			continue
		case can.Off.String():
			text = "off"
		}
		if e := &w.errors; e.Counted && e.State < can.Off && w.link.Up {
			text += fmt.Sprintf(" (%d/%d)", e.Tx, e.Rx)
		}
		return fmt.Sprintf("bus %.24s is %s", w.bus.Name.Text, text)
	}
	return ""
}
