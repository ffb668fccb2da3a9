package network

import (
	"errors"
	"fmt"

	"lockstep/io/sigmap"
)

// Never is the delay of a message that is not sent in a state.
const Never = -1

// Plan is the network of a bench: plain data. Times are in ticks.
type Plan struct {
	Start   State
	Delays  [][States]int64 // by sent message, bus after bus: from the switch-on to its first frame, 0: in its phase; Never: not sent
	Signals []Signal
	Wake    Wake
	Nodes   []NodePlan // at most one per bus, by rising bus
}

// Signal is a sent signal that carries the state of the ignition.
type Signal struct {
	Bus, Message, Field int             // indices of the map, in Map.Tx and in Tx.Fields
	Values              [States]float64 // by state, in the unit of the signal
}

// Wake is the wake-up by a frame, of a bench without network management.
type Wake struct {
	By   [][]bool // by bus and by index in Map.Rx: the message wakes the bench; empty: nothing does
	To   State    // state after the wake-up
	Hold int64    // time without such a frame after which the state is off again; > 0
}

// Check returns an error if the plan does not fit the maps of the buses.
func (p *Plan) Check(maps []*sigmap.Map) error {
	n := 0
	for _, m := range maps {
		n += len(m.Tx)
	}
	if len(p.Delays) != n {
		return fmt.Errorf("network: delays of %d messages, but %d are sent", len(p.Delays), n)
	}
	if p.Start >= States || p.Wake.To >= States {
		return errors.New("network: a state does not exist")
	}
	for _, s := range p.Signals {
		if s.Bus >= len(maps) || s.Message >= len(maps[s.Bus].Tx) || s.Field >= len(maps[s.Bus].Tx[s.Message].Fields) ||
			maps[s.Bus].Tx[s.Message].Fields[s.Field].Waveform == 0 {
			return errors.New("network: an output drives the signal of the state, or it does not exist")
		}
	}
	for i := range p.Nodes {
		if err := p.Nodes[i].check(maps); err != nil {
			return err
		}
	}
	return nil
}
