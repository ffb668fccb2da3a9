package diagnosis

import (
	"errors"
	"fmt"
	"strings"

	"lockstep/io/uds"
)

// Desk takes the commands of clients for the units of a run.
type Desk struct {
	Buses   []string   // names of the buses
	Testers []*Station // of each bus; nil: it has no diagnosis file
	Virtual bool       // the run is in virtual time
}

// UnitRequest asks for a command of the diagnosis.
type UnitRequest struct {
	Words []string `json:"words"`         // command and arguments, as `lockstep uds` has them
	Bus   string   `json:"bus,omitempty"` // bus of the unit; "": the only one with a diagnosis file
}

// UnitAnswer is the answer to a UnitRequest.
type UnitAnswer struct {
	Lines     []string       `json:"lines"`           // the answer for people
	Error     string         `json:"error,omitempty"` // why the unit has not done it
	Exchanges []UnitExchange `json:"exchanges"`       // the first requests of the command, with their answers
}

// UnitExchange is a request with its answer.
type UnitExchange struct {
	Request string  `json:"request"` // as bytes: "22 10 01"
	Answer  string  `json:"answer"`  // as bytes; "": none
	Pending int     `json:"pending"` // times that the unit has answered "response pending" before
	Time    float64 `json:"time_s"`  // from the request to the end of the answer, s
}

// maxExchanges bounds the exchanges of an answer: a flash has thousands.
const maxExchanges = 100

// newAnswer returns an outcome as the answer for a client.
func newAnswer(o *Outcome) *UnitAnswer {
	a := &UnitAnswer{Lines: append([]string{}, o.Lines...), Exchanges: []UnitExchange{}}
	if o.Err != nil {
		a.Error = o.Err.Error()
	}
	for _, e := range o.Exchanges[:min(len(o.Exchanges), maxExchanges)] {
		x := UnitExchange{Request: uds.Bytes(e.Request), Pending: e.Pending, Time: float64(e.End-e.Start) / 1e9}
		if e.Answer != nil {
			x.Answer = uds.Bytes(e.Answer)
		}
		a.Exchanges = append(a.Exchanges, x)
	}
	return a
}

// Ask begins a command. The answer comes on the channel when the unit has answered.
func (d *Desk) Ask(r *UnitRequest) (<-chan *UnitAnswer, error) {
	s, err := d.find(r.Bus)
	if err != nil {
		return nil, err
	}
	j, err := s.Spec.ParseCommand(r.Words, d.Virtual)
	if err != nil {
		return nil, err
	}
	done := make(chan *UnitAnswer, 1)
	j.Done = func(o Outcome) { done <- newAnswer(&o) }
	return done, s.Add(j)
}

// find returns the tester of a bus.
func (d *Desk) find(bus string) (found *Station, err error) {
	var names []string
	for i, s := range d.Testers {
		if s != nil && (bus == "" || bus == d.Buses[i]) {
			found, names = s, append(names, d.Buses[i])
		}
	}
	switch {
	case found == nil && bus != "":
		return nil, fmt.Errorf("the bench has no bus %.60q with a diagnosis file", bus)
	case found == nil:
		return nil, errors.New("no bus of the bench has a diagnosis file (diagnosis: FILE)")
	case len(names) > 1:
		return nil, fmt.Errorf("the buses %s have diagnosis files: name one", strings.Join(names, " and "))
	}
	return found, nil
}
