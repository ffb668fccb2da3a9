package control

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"lockstep/rt"
	"lockstep/rt/fault"
	"lockstep/rt/recorder"
)

// serveRecord starts or ends a record at a tick.
func (c *Server) serveRecord(w http.ResponseWriter, r *http.Request) (any, error) {
	request := &RecordRequest{}
	if err := readRequest(w, r, request); err != nil {
		return nil, err
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // earlier changes may still wait
	a, err := c.turnRecord(request)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return a, nil
}

// turnRecord prepares the start or the end of a record and returns the answer when it has effect.
func (c *Server) turnRecord(request *RecordRequest) (*Answer, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	if rt.Reason(c.Status.Reason.Load()) != rt.NotEnded {
		return nil, refused{http.StatusConflict, errors.New("the run has ended")}
	}
	before, command := c.recorder.Path(), fault.Command{Op: fault.EndRecord}
	turn, err := c.prepareTurn(request)
	if err != nil {
		return nil, refused{http.StatusConflict, err}
	}
	if request.On {
		command.Op = fault.StartRecord
	}
	taken, _ := c.Status.Taken()
	batch := max(c.batch, taken) + 1
	c.recorder.Announce(turn, batch)
	if err := c.post(batch, []fault.Command{command}); err != nil {
		c.recorder.Cancel(turn, before)
		return nil, err
	}
	c.batch = batch
	tick, err := c.awaitEffect()
	if err != nil {
		return nil, err
	}
	if _, obstacle := c.Status.TakenOutcome(); obstacle != 0 {
		c.recorder.Cancel(turn, before)
		return nil, refused{http.StatusConflict, errors.New("a fault delays values or frames: clear it first")}
	}
	for end := time.Now().Add(takeTimeout); c.standing == nil && c.recorder.Waits() && time.Now().Before(end); {
		time.Sleep(recorder.DrainInterval / 10)
	}
	return &Answer{Tick: tick, Time: c.time(tick), Record: c.recorder.Path()}, nil
}

// prepareTurn prepares the start or the end of a record.
func (c *Server) prepareTurn(request *RecordRequest) (*recorder.Turn, error) {
	if !request.On {
		return c.recorder.PrepareEnd()
	}
	if c.Checkpoint == nil {
		return nil, errors.New("the kernel is generated, or this supervisor has attached to the run: start the run with -record FILE")
	}
	if state, _ := c.Checkpoint.Copy(); state == nil {
		return nil, errors.New("the kernel in use cannot be copied while it runs: start the run with -record FILE")
	}
	return c.recorder.PrepareStart(request.File)
}
