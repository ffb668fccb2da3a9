package record

import (
	"fmt"
	"io"
	"slices"

	"lockstep/io/can"
	"lockstep/io/framelog"
	"lockstep/io/inputfile"
)

// Source returns the frames of a log, or the received frames of a record, in the order of
// time. It holds a few frames in memory, independent of the length of the log.
type Source struct {
	io.Closer // closes the file

	Disorder int    // frames out of order by more than reorderWindow: set to the time of the frame before
	Gaps     int    // gaps of a record: entries lost or damaged
	FirstGap string // description of the first gap

	// Torn describes, after io.EOF, what is missing at the end of a record; "" if nothing is missing,
	// and for a log, which does not show it.
	Torn func() string

	channel string
	next    func() (framelog.Frame, error)
	buffer  []framelog.Frame // frames read ahead, in the order of time
	err     error            // last error of the log
	count   int              // frames so far, of any channel
	start   int64            // time of the first frame, of any channel
	last    int64            // time of the last frame returned
}

// reorderWindow is the number of frames by which a frame may be out of order in a log:
// recorders with a queue per bus write some milliseconds in disorder.
const reorderWindow = 256

// OpenSource opens a log, as framelog.New reads it, or a record; the caller closes it. It returns the frames
// of one channel, an interface such as can0 or in ASC, TRC, BLF and MDF4 a number such as 1, or with ""
// of all channels. Times count from the first frame of any channel, so that
// two sources of one log are synchronous. Error frames are left out.
func OpenSource(path, channel string) (*Source, error) {
	f, err := inputfile.Open(path, inputfile.Log)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	s := &Source{Closer: f, channel: channel}
	if err := s.open(path, f); err != nil {
		f.Close()
		return nil, err
	}

	return s, nil
}

// open starts reading f, a record or a log.
func (s *Source) open(path string, f *inputfile.File) error {
	head := make([]byte, len(magic))
	if _, _ = f.ReadAt(head, 0); !IsRecord(head) {
		l, err := framelog.New(path, f)
		if err != nil {
			return err
		}
		s.next, s.Torn = l.Next, func() string { return "" }
		return nil
	}

	r, err := NewReader(path, f)
	if err != nil {
		return err
	}
	s.next, s.Torn = s.recordFrames(r), r.Torn
	return nil
}

// recordFrames returns a function that reads the received frames of a record; its channels
// are the interfaces.
func (s *Source) recordFrames(r *Reader) func() (framelog.Frame, error) {
	return func() (framelog.Frame, error) {
		for {
			e, err := r.Next()
			if err != nil {
				return framelog.Frame{}, err
			}
			switch f := &e.Frame; {
			case e.Kind == FrameEntry && !f.Sent && !f.Copy && f.Flags&can.FlagLong == 0:
				return framelog.Frame{Time: r.Header.timeOr(f.Time, f.Tick), Channel: r.Header.busName(f.Bus), Frame: f.Frame}, nil
			case e.Kind == EventEntry && (e.Event.Kind == Lost || e.Event.Kind == MonitorLost || e.Event.Kind == Damage):
				if s.Gaps++; s.Gaps == 1 {
					s.FirstGap = e.Event.Text
				}
			}
		}
	}
}

// Next returns the next frame; at the end the error is io.EOF.
func (s *Source) Next() (framelog.Frame, error) {
	for s.err == nil && len(s.buffer) < reorderWindow {
		s.readFrame()
	}
	if len(s.buffer) == 0 {
		return framelog.Frame{}, s.err
	}
	f := s.buffer[0]
	s.buffer = slices.Delete(s.buffer, 0, 1)
	f.Time -= s.start
	if f.Time < s.last {
		s.Disorder++
		f.Time = s.last
	}

	s.last = f.Time
	return f, nil
}

// readFrame reads one more frame and inserts it into the buffer in the order of time.
func (s *Source) readFrame() {
	f, err := s.next()
	if err != nil {
		s.err = err
		return
	}

	if f.ID&can.ERR != 0 {
		return
	}
	if s.count++; s.count <= reorderWindow && (s.count == 1 || f.Time < s.start) {
		s.start = f.Time
	}
	if s.channel != "" && f.Channel != s.channel {
		return
	}
	i := len(s.buffer)
	for i > 0 && s.buffer[i-1].Time > f.Time {
		i--
	}
	s.buffer = slices.Insert(s.buffer, i, f)
}
