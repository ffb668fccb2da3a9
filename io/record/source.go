package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"lockstep/io/can"
)

// Source gives the frames of a log, or those of others in a record, in the order of time.
// It holds a few of them in memory, whatever the length of the log.
type Source struct {
	Disorder int // frames that came further than window too late: moved to the time of the one before
	Gaps     int // places in a record where something is lost or damaged

	channel string
	next    func() (Logged, error)
	closer  io.Closer
	torn    func() string // nil: it is no record
	held    []Logged      // in the order of time
	err     error         // what the log said last
	seen    int           // frames so far, of any channel
	start   int64         // time of the first frame, of any channel
	last    int64         // of the one given last
}

// window is how many frames a frame may stand too late in a log: recorders that have a
// queue per bus write a few milliseconds in disorder.
const window = 256

// OpenSource opens a log of candump -L, an ASC log or a record. Only the frames of the
// channel are given, of an interface such as can0 or in ASC of a number such as 1; with
// "" those of all. Times count from the first frame of any channel, so that two sources of
// one log keep step. Error frames are left out. Close it.
func OpenSource(path, channel string) (*Source, error) {
	s := &Source{channel: channel}
	is, err := isRecord(path)
	if err != nil {
		return nil, err
	}
	if is {
		r, err := Open(path)
		if err != nil {
			return nil, err
		}
		s.next, s.closer, s.torn = s.received(r), r, r.Torn
		return s, nil
	}
	l, err := OpenLog(path)
	if err != nil {
		return nil, err
	}
	s.next, s.closer = l.Next, l
	return s, nil
}

// isRecord tells a record, also a series of files, from a log.
func isRecord(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		if numbers, _ := parts(path); len(numbers) > 0 {
			return true, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("record: %w", err)
	}
	defer f.Close()
	head := make([]byte, len(magic)-1) // without the version: Open has words for another one
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("record: %w", err)
	}
	return bytes.HasPrefix([]byte(magic), head[:n]) && n == len(head), nil
}

// received reads the frames of a record that others have sent; channels are the
// interfaces.
func (s *Source) received(r *Reader) func() (Logged, error) {
	return func() (Logged, error) {
		for {
			e, err := r.Next()
			if err != nil {
				return Logged{}, err
			}
			switch f := &e.Frame; {
			case e.Kind == FrameEntry && !f.Sent && !f.Copy:
				return Logged{Time: r.Header.time(f.Time, f.Tick), Channel: r.Header.bus(f.Bus), Frame: f.Frame}, nil
			case e.Kind == EventEntry && (e.Event.Kind == Lost || e.Event.Kind == Unheard || e.Event.Kind == Damage):
				s.Gaps++
			}
		}
	}
}

// Next is the next frame; at the end the error is io.EOF.
func (s *Source) Next() (Logged, error) {
	for s.err == nil && len(s.held) < window {
		s.fill()
	}
	if len(s.held) == 0 {
		return Logged{}, s.err
	}
	f := s.held[0]
	s.held = slices.Delete(s.held, 0, 1)
	f.Time -= s.start
	if f.Time < s.last {
		s.Disorder++
		f.Time = s.last
	}
	s.last = f.Time
	return f, nil
}

// fill takes one more line of the log and puts it where it belongs.
func (s *Source) fill() {
	f, err := s.next()
	if err != nil {
		s.err = err
		return
	}
	if f.ID&can.ERR != 0 {
		return
	}
	if s.seen++; s.seen <= window && (s.seen == 1 || f.Time < s.start) {
		s.start = f.Time
	}
	if s.channel != "" && f.Channel != s.channel {
		return
	}
	i := len(s.held)
	for i > 0 && s.held[i-1].Time > f.Time {
		i--
	}
	s.held = slices.Insert(s.held, i, f)
}

// Torn says, after io.EOF, what is missing at the end of a record; empty if nothing is,
// and of a log, of which nobody can say.
func (s *Source) Torn() string {
	if s.torn == nil {
		return ""
	}
	return s.torn()
}

// Close closes the log.
func (s *Source) Close() error { return s.closer.Close() }
