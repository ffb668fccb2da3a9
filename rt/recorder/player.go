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
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/sched"
)

// logChannel is the file and the channel, "" for all, of such an interface. A file whose
// own name has an "@" is found first.
func logChannel(iface string) (path, channel string) {
	path = strings.TrimPrefix(iface, bench.LogPrefix)
	if i := strings.LastIndexByte(path, '@'); i > 0 {
		if _, err := os.Stat(path); err != nil {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

// Player puts the frames of a log on a bus between two processes, each when it was
// due in the log: its first one at the first grid point. Only what the bench receives
// is played; what the target sends is read and thrown away.
type Player struct {
	name    string
	Log     *record.Source
	Bus     *can.Bus
	filters []can.Filter

	stop chan struct{} // closed when the run is over
	done chan struct{} // closed when nothing is played any more; what follows is valid then

	ahead   *record.Logged // the frame to be played next; nil: it is not known yet
	played  uint64         // frames
	ended   bool           // the log was played to its end
	dropped uint64         // frames that found no room
	late    int64          // the most that one came late, ns: the player has no real-time rights
	trouble error          // what ended it early
}

// OpenPlayer opens the log of an interface; the target gets the other end of the bus.
func OpenPlayer(iface string, filters []can.Filter) (*Player, *os.File, error) {
	path, channel := logChannel(iface)
	from, err := record.OpenSource(path, channel)
	if err != nil {
		return nil, nil, err
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
	return &Player{name: strings.TrimPrefix(iface, bench.LogPrefix), Log: from, Bus: bus, filters: filters, stop: make(chan struct{}), done: make(chan struct{})}, target, nil
}

// Play plays until the log or the run has ended.
func (p *Player) Play(page *rt.Page) {
	defer close(p.done)
	for page.StartNs.Load() == 0 {
		if !p.idle(sched.Now() + int64(5*time.Millisecond)) {
			return
		}
	}
	start := int64(page.StartNs.Load())
	for p.next() {
		if !p.idle(start + p.ahead.Time) {
			return
		}
		p.late = max(p.late, sched.Now()-start-p.ahead.Time)
		p.put()
	}
	for p.idle(sched.Now() + int64(time.Second)) {
	}
}

// PlayUntil plays what is due until an instant, ns from the first grid point on, without a
// clock.
func (p *Player) PlayUntil(now int64) {
	var waste [32]can.Frame
	for p.Bus.Recv(waste[:]) > 0 {
	}
	for p.next() && p.ahead.Time <= now {
		p.put()
	}
}

// next looks for the next frame that the bench receives; false: there is none.
func (p *Player) next() bool {
	for p.ahead == nil && !p.ended && p.trouble == nil {
		f, err := p.Log.Next()
		switch {
		case errors.Is(err, io.EOF):
			p.ended = true
		case err != nil:
			p.trouble = err
		case p.wanted(&f.Frame):
			p.ahead = &f
		}
	}
	return p.ahead != nil
}

// put sends that frame.
func (p *Player) put() {
	if p.Bus.Send(&p.ahead.Frame) {
		p.played++
	} else {
		p.dropped++
	}
	p.ahead = nil
}

// idle reads what the target sends until an instant; false: the run is over.
func (p *Player) idle(until int64) bool {
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

// wanted says that the bench receives such a frame, as the kernel's filters would.
func (p *Player) wanted(f *can.Frame) bool {
	return slices.ContainsFunc(p.filters, func(w can.Filter) bool { return f.ID&w.Mask == w.ID&w.Mask })
}

// Report is what the report has to say of the log.
func (p *Player) Report() string {
	text := p.name + " was played to its end"
	switch {
	case p.trouble != nil:
		text = fmt.Sprintf("%s ended early: %v", p.name, p.trouble)
	case !p.ended:
		text = p.name + " had not come to its end"
	case p.Log.Torn() != "":
		text = fmt.Sprintf("%s was played as far as it goes: %s", p.name, p.Log.Torn())
	}
	if p.played == 0 && p.dropped == 0 {
		text += "; it held no frame that the bench receives"
	} else {
		text += fmt.Sprintf("; its frames came at most %.3f ms late", float64(p.late)/1e6)
	}
	if n := p.Log.Disorder; n > 0 {
		text += fmt.Sprintf("; %d frames were out of order", n)
	}
	if n := p.Log.Gaps; n > 0 {
		text += fmt.Sprintf("; something is missing in it at %d places", n)
	}
	if p.dropped > 0 {
		text += fmt.Sprintf("; %d frames found no room", p.dropped)
	}
	return text
}

// Finish ends it.
func (p *Player) Finish() {
	close(p.stop)
	<-p.done
	p.Bus.Close()
}
