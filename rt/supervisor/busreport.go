package supervisor

import (
	"fmt"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt/report"
	"lockstep/sched"
)

// report is how the buses fared.
func (s *busStates) report() (list []report.BusState) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.lines {
		s.account(w, sched.Now())
		e := &w.errors
		v := report.BusState{
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
			if c.Bus == w.bus.Name.Text {
				v.Changes = append(v.Changes, c)
			}
		}
		list = append(list, v)
	}
	return list
}

// events are the changes since the last call, as a record keeps them.
func (s *busStates) events() (list []record.Event) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.changes[s.seen:] {
		list = append(list, record.Event{Kind: record.BusState, Tick: c.Tick, Time: c.Time, Text: c.Text})
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
		case report.BusUp, can.Active.String():
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
