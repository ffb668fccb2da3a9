package control

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/network"
	"lockstep/model/plantfile"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// parameters changes parameters of the plant while the run lasts. One goroutine prepares the tables of one
// change after the other. Requests that arrive meanwhile become one change.
type parameters struct {
	report.View
	streams *streams
	record  *recorder.EventLog // nil: there is no record
	fixed   error              // why no parameter can change; nil: the tunable ones can

	standing *standingPlant // of a run in virtual time; nil: the run is in real time

	mu      sync.Mutex
	busy    bool            // a change is being prepared, or waits for the loop
	waiting []*paramRequest // requests for the next change
}

// paramRequest is a request that waits for its change.
type paramRequest struct {
	set  []plantfile.Assignment
	done chan paramResult
}

type paramResult struct {
	answer *Answer
	err    error
}

// ParamRequest asks to change parameters of the plant, all at one tick. A value is a number in the unit of
// the parameter, or a text as people type it: "2000 kg".
type ParamRequest struct {
	Values map[string]any `json:"values"`
}

func newParameters(s *streams) *parameters {
	p := &parameters{View: s.View, streams: s, fixed: s.Handover.FixedParameters()}
	if err := s.readParameters(p.inEffect()); p.fixed == nil {
		p.fixed = err
	}
	if p.fixed == nil && p.TableSets == nil {
		p.fixed = errors.New("this run has no memory for tables of other parameters")
	}
	return p
}

// inEffect returns the values that changes so far have given to parameters.
func (p *parameters) inEffect() (set []plantfile.Assignment) {
	if p.standing != nil {
		if set, offered := p.standing.offered(p.Status); offered {
			return set
		}
	}
	slot := p.Status.ActiveSlot()
	if slot < 0 || p.TableSets == nil {
		return nil
	}
	return bench.SetInEffect(p.TableSets.Text(slot))
}

// assignments returns the values of a request, ordered by name. A number gets the unit of its parameter.
func (p *parameters) assignments(r *ParamRequest) (set []plantfile.Assignment, err error) {
	for name, v := range r.Values {
		a := plantfile.Assignment{Name: name}
		switch v := v.(type) {
		case string:
			a.Value = v
		case float64:
			a.Value = strconv.FormatFloat(v, 'g', -1, 64)
			if s := p.streams.description.byName[name]; s != nil && s.Kind == ParameterKind {
				a.Value = units.WithUnit(a.Value, s.Unit)
			}
		}
		if a, err = plantfile.ParseAssignment(a.String()); err != nil {
			return nil, fmt.Errorf("param: %.60q needs a number or a text as its value", name)
		}
		if _, err := scenario.ParseRequest(a.String()); err != nil {
			return nil, err
		}
		set = append(set, a)
	}
	slices.SortFunc(set, func(a, b plantfile.Assignment) int { return strings.Compare(a.Name, b.Name) })
	if len(set) == 0 {
		return nil, errors.New("param: NAME=VALUE is missing")
	}
	return set, nil
}

// serve changes parameters and returns the answer when the change is in effect.
func (p *parameters) serve(request *ParamRequest) (*Answer, error) {
	set, err := p.assignments(request)
	if err != nil {
		return nil, err
	}
	if p.fixed != nil {
		return nil, refused{http.StatusConflict, fmt.Errorf("param: %w", p.fixed)}
	}
	r := &paramRequest{set, make(chan paramResult, 1)}
	p.mu.Lock()
	if _, err := p.Handover.Parameters(p.merge(append(slices.Clone(p.waiting), r))); err != nil {
		p.mu.Unlock()
		return nil, fmt.Errorf("param: %w", err)
	}
	p.waiting = append(p.waiting, r)
	if !p.busy {
		p.busy = true
		go p.work()
	}
	p.mu.Unlock()
	result := <-r.done
	return result.answer, result.err
}

// merge returns the values in effect after those of requests.
func (p *parameters) merge(list []*paramRequest) []plantfile.Assignment {
	set := p.inEffect()
	for _, r := range list {
		set = append(set, r.set...)
	}
	return scenario.LastOf(set)
}

// work makes changes until no request waits.
func (p *parameters) work() {
	for {
		p.mu.Lock()
		list := p.waiting
		p.waiting, p.busy = nil, len(list) > 0
		p.mu.Unlock()
		if len(list) == 0 {
			return
		}
		p.answer(list)
	}
}

// answer makes one change of requests and answers them. If it is refused, each request becomes a change of
// its own: the values of one client may be those at fault.
func (p *parameters) answer(list []*paramRequest) {
	set := p.merge(list)
	tick, err := p.change(set)
	if with := (refused{}); err != nil && len(list) > 1 && !(errors.As(err, &with) && with.code == http.StatusGatewayTimeout) {
		for _, r := range list {
			p.answer([]*paramRequest{r})
		}
		return
	}
	for _, r := range list {
		a := &Answer{Tick: tick, Time: float64(tick*p.Handover.Tables.PeriodNs) / 1e9, Parameters: texts(set)}
		for _, v := range r.set {
			a.Superseded = a.Superseded || !slices.Contains(set, v)
		}
		if err != nil {
			a = nil
		}
		r.done <- paramResult{a, err}
	}
}

// texts returns assignments by name.
func texts(set []plantfile.Assignment) map[string]string {
	list := map[string]string{}
	for _, a := range set {
		list[a.Name] = a.Value
	}
	return list
}

// change prepares the tables with the values of set, offers them to the loop, and returns the first tick
// with them.
func (p *parameters) change(set []plantfile.Assignment) (tick int64, err error) {
	defer func() {
		if r := recover(); r != nil { // a fault of this program must not end the run
			err = refused{http.StatusInternalServerError, fmt.Errorf("internal error: %v", r)}
		}
	}()
	c, err := p.prepare(set)
	if err != nil {
		return 0, fmt.Errorf("param: %w", err)
	}
	if p.standing != nil {
		return p.offerStanding(c)
	}
	if number, _, _ := p.Status.Decided(); number != p.Status.OffersPosted() {
		return 0, refused{http.StatusConflict, errors.New("the loop has not decided the last change yet: ask again when it goes on")}
	}
	number, err := p.offer(c)
	if err != nil {
		return 0, err
	}
	return p.await(number, c.tables.Tables[0])
}

// preparedChange is a change of parameters that the loop can take over.
type preparedChange struct {
	set     []plantfile.Assignment // all values that changes have given
	list    [][]network.Parameter  // parameters of the plant with them, by phase
	tables  *bench.TableSet
	kernels []*kernel.Kernel // of tables, by phase
}

// prepare prepares a change for the present phase and those after it.
func (p *parameters) prepare(set []plantfile.Assignment) (c *preparedChange, err error) {
	h, phase := p.Handover, p.Status.Phase()
	c = &preparedChange{set: set, list: make([][]network.Parameter, 1+len(h.Changes))}
	if c.tables, err = h.PrepareSet(phase, set); err != nil {
		return nil, err
	}
	for i := phase; i <= len(h.Changes); i++ {
		if c.list[i], err = h.Parameters(h.SetOfPhase(i, set)); err != nil {
			return nil, err
		}
	}
	c.kernels = c.tables.Kernels()
	return c, nil
}

// offer writes a change to the memory of the target, offers it to the loop, and returns the number of the offer.
// A change that the loop has not looked at yet is replaced: both have one number.
func (p *parameters) offer(c *preparedChange) (number uint64, err error) {
	if rt.Reason(p.Status.Reason.Load()) != rt.NotEnded {
		return 0, refused{http.StatusConflict, errors.New("the run has ended")}
	}
	slot := 0
	if p.Status.ActiveSlot() == slot {
		slot = 1
	}
	var words []string
	for _, a := range c.set {
		words = append(words, a.String())
	}
	if err := p.TableSets.Write(slot, c.kernels, strings.Join(words, "\n")); err != nil {
		return 0, refused{http.StatusConflict, fmt.Errorf("param: %w", err)}
	}
	decided, _, _ := p.Status.Decided()
	number = decided + 1
	p.record.KeepSet(number, recorder.ParameterSet{Line: line("param", words), Tables: c.tables}) // before the loop can decide
	p.streams.keepParameters(number, c.list)
	p.Status.Offer(slot)
	return number, nil
}

// await waits until the loop has decided an offer, and returns the first tick with its tables t.
func (p *parameters) await(number uint64, t *kernel.Tables) (int64, error) {
	period := time.Duration(t.PeriodNs)
	most := takeTimeout + (kernel.MaxWait+2)*period
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(min(period/4, 5*time.Millisecond)) {
		decided, tick, obstacle := p.Status.Decided()
		switch {
		case decided == number && obstacle != 0:
			return 0, refused{http.StatusConflict, fmt.Errorf("param: the change was refused at tick %d: %s", tick, t.Describe(kernel.Obstacle(obstacle)))}
		case decided == number && int64(p.Status.Ticks.Load()) >= tick:
			return tick, nil
		case rt.State(p.Status.State.Load()) == rt.Ended:
			return 0, refused{http.StatusConflict, errors.New("the run ended before the change had effect")}
		}
	}
	return 0, refused{http.StatusGatewayTimeout, fmt.Errorf("the loop has not decided the change within %v; "+
		"the change has effect when the loop goes on", most)}
}
