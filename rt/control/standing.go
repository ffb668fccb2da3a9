package control

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/plantfile"
	"lockstep/rt"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
)

// standing is the state of a run in virtual time that advances on request only. Between two requests the
// run stands, and its goroutine runs the calls of clients. So a change takes effect at the tick after the
// one at which the run stands, however long the client takes.
type standing struct {
	calls   chan func(l *rt.Loop)
	until   int64           // last tick that may be simulated. The goroutine of the run owns this, reached and left.
	reached chan struct{}   // closed when the run stands at until; nil: no client waits
	left    <-chan struct{} // closed when the client that waits has left; nil: no client waits
}

// OpenVirtual opens the door of a run in virtual time, which advances on request only: the run calls
// Server.Stand before each tick. The rest is as with Open.
func OpenVirtual(dir string, r report.View, plant *kernel.Sequence, record *recorder.Recorder, stop chan<- os.Signal) (*Server, error) {
	d, err := Describe(r)
	if err != nil {
		return nil, err
	}
	c := newServer(r, d)
	c.target, c.standing = os.Getpid(), &standing{calls: make(chan func(*rt.Loop))}
	c.parameters.standing = &standingPlant{plant: plant, whenStanding: c.whenStanding}
	return c.open(dir, record, stop)
}

// Stand returns when a client wants tick k, or the signal that ends the run. Before it waits, it calls read,
// which must read the ring.
func (c *Server) Stand(k int64, l *rt.Loop, read func(), stop <-chan os.Signal) os.Signal {
	s := c.standing
	select {
	case <-s.left:
		s.until = min(s.until, k-1)
	default:
	}
	if k > s.until {
		if read(); k == 1 {
			c.streams.begin(l.U, l.Y)
		}
		if s.reached != nil {
			close(s.reached)
			s.reached, s.left = nil, nil
		}
	}
	for k > s.until {
		select {
		case f := <-s.calls:
			f(l)
		case sig := <-stop:
			return sig
		}
	}
	select {
	case sig := <-stop:
		return sig
	default:
		return nil
	}
}

// begin takes the start of a run as the values at tick 0.
func (s *streams) begin(u, y []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	copy(s.u, u)
	copy(s.y, y)
	s.begun = true
}

// whenStanding calls f in the goroutine of the run when the run stands; false: the run has ended.
func (c *Server) whenStanding(f func(l *rt.Loop)) bool {
	done := make(chan struct{})
	select {
	case c.standing.calls <- func(l *rt.Loop) { f(l); close(done) }:
		<-done
		return true
	case <-c.reportReady:
		return false
	}
}

// serveAdvance advances a run in virtual time, and answers when the run stands again or has ended. If the
// client leaves, the run stands at the tick that it has reached.
func (c *Server) serveAdvance(w http.ResponseWriter, r *http.Request) (any, error) {
	var a AdvanceRequest
	if err := readRequest(w, r, &a); err != nil {
		return nil, err
	}
	if c.standing == nil {
		return nil, refused{http.StatusConflict, errors.New("advance: the run is in real time and advances by itself; " +
			"lockstep sim BENCH -door advances on request")}
	}
	ticks, ok := parseTicks(a.Time, c.Handover.Tables.PeriodNs)
	if !ok {
		return nil, fmt.Errorf("advance: %.60q is not a time up to %v, like 100ms", a.Time, maxInterval)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the simulation may take long
	c.waitingClients.Add(1)
	defer c.waitingClients.Add(-1)
	reached := make(chan struct{})
	c.whenStanding(func(*rt.Loop) {
		c.standing.until += ticks
		c.standing.reached, c.standing.left = reached, r.Context().Done()
	})
	select {
	case <-reached:
		return c.newAnswer(), nil
	case <-c.reportReady:
		writeAnswer(w, &c.ended, nil)
		return nil, nil
	}
}

// standingPlant is the plant of a run in virtual time, whose parameters change when the run stands.
type standingPlant struct {
	plant        *kernel.Sequence
	whenStanding func(f func(l *rt.Loop)) bool
	last         atomic.Pointer[standingOffer]
}

// standingOffer is the last change that was offered.
type standingOffer struct {
	number uint64
	set    []plantfile.Assignment
}

// offered returns the values of a change that takes effect at the next tick; false: there is none.
func (s *standingPlant) offered(p *rt.StatusBlock) ([]plantfile.Assignment, bool) {
	o := s.last.Load()
	if decided, _, _ := p.Decided(); o == nil || o.number <= decided {
		return nil, false
	}
	return o.set, true
}

// changesNext reports whether a change of parameters takes effect at the next tick of a run that stands.
func (p *parameters) changesNext() bool {
	_, waits := p.standing.offered(p.Status)
	return waits
}

// offerStanding makes a change take effect at the tick after the one at which the run stands. It replaces a
// change that would take effect at the same tick, whose values it has. A change that the plant cannot take
// over there is refused: the run must not advance unasked.
func (p *parameters) offerStanding(c *preparedChange) (tick int64, err error) {
	stood := p.standing.whenStanding(func(l *rt.Loop) {
		l.TakeCommands() // a reset that is posted comes first
		tick = int64(p.Status.Ticks.Load()) + 1
		if o := p.standing.plant.Obstacle(c.kernels); o != kernel.NoObstacle {
			err = refused{http.StatusConflict, fmt.Errorf("param: the change is refused at tick %d: %s: advance the run and ask again",
				tick, c.tables.Tables[0].Describe(o))}
			return
		}
		var number uint64
		if number, err = p.offer(c); err == nil {
			p.standing.last.Store(&standingOffer{number, c.set})
		}
	})
	if !stood {
		return 0, refused{http.StatusConflict, errors.New("the run ended before the change had effect")}
	}
	return tick, err
}
