package recorder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"lockstep/io/can"
	"lockstep/io/framelog"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// Player sends the frames of a log on a bus between two processes, each at its time in the log; the
// first frame is due at the first grid point. It plays only frames that the bench receives, and
// discards what the target sends.
type Player struct {
	name    string
	Log     *record.Source
	Bus     *can.Bus
	Times   *can.Times // arrivals of the frames in virtual time; nil in real time
	filters []can.Filter

	stop chan struct{} // closed when the run has ended
	done chan struct{} // closed when playing has ended; the fields below are valid then

	ahead   *framelog.Frame // next frame to be played; nil: not read yet
	played  uint64          // frames played
	ended   bool            // the log was played to its end
	dropped uint64          // frames that the bus did not take
	late    int64           // largest delay of a frame, ns: the player has no real-time rights
	err     error           // error that ended the log early
}

// OpenPlayer opens the log of an interface. The returned file is the target's end of the bus.
func OpenPlayer(iface string, filters []can.Filter) (*Player, *os.File, error) {
	from, err := bench.OpenLog(iface)
	if err != nil {
		return nil, nil, &host.Exit{Code: 2, Err: err}
	}
	target, unit, err := can.Pair()
	if err != nil {
		from.Close()
		return nil, nil, err
	}

	bus, err := can.Inherit(unit)
	if err != nil {
		from.Close()
		target.Close()
		return nil, nil, err
	}

	return &Player{name: strings.TrimPrefix(iface, bench.LogPrefix), Log: from, Bus: bus, filters: filters,
		stop: make(chan struct{}), done: make(chan struct{})}, target, nil
}

// Play plays until the log or the run has ended.
func (p *Player) Play(status *rt.StatusBlock) {
	defer close(p.done)
	for status.StartNs.Load() == 0 {
		if !p.discardUntil(sched.Now() + int64(5*time.Millisecond)) {
			return
		}
	}

	start := int64(status.StartNs.Load())
	for p.fetchNext() {
		if !p.discardUntil(start + p.ahead.Time) {
			return
		}
		p.late = max(p.late, sched.Now()-start-p.ahead.Time)
		p.sendNext()
	}

	for p.discardUntil(sched.Now() + int64(time.Second)) {
	}
}

// PlayUntil plays the frames due until an instant, ns after the first grid point, in virtual time.
func (p *Player) PlayUntil(now int64) {
	var waste [32]can.Frame
	for p.Bus.Recv(waste[:]) > 0 {
	}
	for p.fetchNext() && p.ahead.Time <= now {
		p.sendNext()
	}
}

// fetchNext reads up to the next frame that the bench receives; false: there is none.
func (p *Player) fetchNext() bool {
	for p.ahead == nil && !p.ended && p.err == nil {
		f, err := p.Log.Next()
		switch {
		case errors.Is(err, io.EOF):
			p.ended = true
		case err != nil:
			p.err = err
		case p.isReceived(&f.Frame):
			p.ahead = &f
		}
	}

	return p.ahead != nil
}

// sendNext sends that frame.
func (p *Player) sendNext() {
	if p.Bus.Send(&p.ahead.Frame) {
		p.played++
		if p.Times != nil {
			p.Times.Add(p.ahead.Time)
		}
	} else {
		p.dropped++
	}

	p.ahead = nil
}

// discardUntil discards the frames of the target until an instant; false: the run has ended.
func (p *Player) discardUntil(until int64) bool {
	var waste [32]can.Frame
	for {
		p.Bus.Recv(waste[:])
		left := time.Duration(until - sched.Now())
		if left <= 0 {
			return true
		}
		select {
		case <-p.stop:
			return false
		case <-time.After(min(left, 5*time.Millisecond)):
		}
	}
}

// isReceived reports whether the bench receives such a frame, by the filters of its socket.
func (p *Player) isReceived(f *can.Frame) bool {
	return slices.ContainsFunc(p.filters, func(w can.Filter) bool { return f.ID&w.Mask == w.ID&w.Mask })
}

// Report describes how far the log was played, and its faults.
func (p *Player) Report() string {
	text := p.name + " was played to the end"
	switch {
	case p.err != nil:
		text = fmt.Sprintf("%s ended early: %v", p.name, p.err)
	case !p.ended:
		text = p.name + " was not played to the end"
	case p.Log.Torn() != "":
		text = fmt.Sprintf("%s was played to the point where the file is cut: %s", p.name, p.Log.Torn())
	}

	if p.played == 0 && p.dropped == 0 {
		text += "; no frame in it is received by the bench"
	} else {
		text += fmt.Sprintf("; frames at most %.3f ms late", float64(p.late)/1e6)
	}

	if n := p.Log.Disorder; n > 0 {
		text += fmt.Sprintf("; %d frames out of order", n)
	}
	if n := p.Log.Gaps; n > 0 {
		text += fmt.Sprintf("; %d gaps in the log, the first: %s", n, p.Log.FirstGap)
	}
	if p.dropped > 0 {
		text += fmt.Sprintf("; %d frames dropped because the bus was full", p.dropped)
	}
	return text
}

// isBroken reports whether the log could not be read, has gaps, or lacks its end.
func (p *Player) isBroken() bool {
	return p.err != nil || p.Log.Gaps > 0 || p.ended && p.Log.Torn() != ""
}

// AddPlayed adds the results of the players to the report of a run. A run of a broken log is not clean.
func AddPlayed(players []*Player, r *report.Report) {
	for _, p := range players {
		text := p.Report()
		r.Played = append(r.Played, text)
		if p.isBroken() && r.Clean {
			r.Clean, r.Ended = false, "a log was not played whole: "+text
		}
	}
}

// Finish stops the player and closes its bus.
func (p *Player) Finish() {
	close(p.stop)
	<-p.done
	p.Bus.Close()
}
