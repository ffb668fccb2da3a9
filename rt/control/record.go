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
	if request.On == nil || !*request.On && request.File != "" {
		return nil, errors.New(`record: want {"on": true, "file": FILE} or {"on": false}`)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // earlier changes may still wait
	a, err := c.switchRecord(request)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return a, nil
}

// switchRecord starts or ends a record and returns the answer when that has happened.
func (c *Server) switchRecord(request *RecordRequest) (*Answer, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	if rt.Reason(c.Status.Reason.Load()) != rt.NotEnded {
		return nil, refused{http.StatusConflict, errors.New("the run has ended")}
	}
	taken, _ := c.Status.Taken()
	batch, command, prepare := max(c.batch, taken)+1, fault.Command{Op: fault.EndRecord}, c.recorder.PrepareEnd
	if *request.On {
		command.Op, prepare = fault.StartRecord, func() (*recorder.Switch, error) { return c.recorder.PrepareStart(request.File) }
	}
	s, err := prepare()
	if err == nil {
		err = c.recorder.Announce(s, batch)
	}
	if err != nil {
		return nil, refused{http.StatusConflict, err}
	}
	if err := c.post(batch, []fault.Command{command}); err != nil {
		c.recorder.Cancel(s)
		return nil, err
	}
	c.batch = batch
	tick, err := c.awaitEffect()
	if err != nil {
		return nil, err
	}
	select {
	case err = <-s.Done():
	case <-time.After(takeTimeout):
		return nil, refused{http.StatusGatewayTimeout, errors.New("the recorder is late, as its disk is slow: ctl status shows whether the change has happened, or why not")}
	}
	if err != nil {
		return nil, refused{http.StatusConflict, err}
	}
	return &Answer{Tick: tick, Time: c.time(tick), Record: c.recorder.Path()}, nil
}
