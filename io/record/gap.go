package record

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// GapError is the error for a record with missing parts. The export holds all other parts.
type GapError struct {
	Gaps  []string // description of each gap, in the order of the record: at most maxGaps
	Count int      // number of gaps
}

// maxGaps limits the gaps that an error lists.
const maxGaps = 20

func (e *GapError) Error() string {
	text := strings.Join(e.Gaps, "\n")
	if more := e.Count - len(e.Gaps); more > 0 {
		text += fmt.Sprintf("\nand %d gaps more", more)
	}
	return text
}

// Export exports the remaining entries of a record. The error is a *GapError if the record has gaps
// or lacks its end.
func Export(r *Reader, format string, to Target) error {
	x, err := NewExporter(format, to, &r.Header)
	if err != nil {
		return err
	}
	if err := Walk(r, x, format != "csv"); err != nil {
		var gaps *GapError
		if errors.As(err, &gaps) {
			return err
		}
		return fmt.Errorf("record: %s: %w", format, err)
	}
	return nil
}

// Walk passes the remaining entries of a record to x and closes it; without frames, a missing frame is no
// gap. The error is a *GapError if the record has gaps or lacks its end.
func Walk(r *Reader, x Exporter, frames bool) error {
	g := gapFinder{Exporter: x, r: r, frames: frames, marked: true}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(g.err(), err, x.Close())
		}
		if err := g.Write(e); err != nil {
			return err
		}
	}

	var err error
	if r.Torn() != "" {
		err = g.mark(Damage, g.next, r.Torn())
	}
	if err := errors.Join(err, x.Close()); err != nil {
		return err
	}
	return g.err()
}

// gapFinder finds the gaps of a record while it is exported, and marks them.
type gapFinder struct {
	Exporter
	r      *Reader
	frames bool // the format has frames
	gaps   GapError

	next   int64 // index of the tick after the last one
	ticks  bool  // a tick was exported
	marked bool  // next may differ from the next tick: the record begins, or the gap is known already
	lost   bool  // ticks before the first one are missing
}

func (g *gapFinder) Write(e *Entry) error {
	switch {
	case e.Kind == TickEntry:
		return g.writeTick(e)
	case e.Kind != EventEntry:
	case e.Event.Kind == Damage:
		g.marked = true
		g.lost = g.lost || g.r.dataLost
		g.note(g.r.name + ": " + e.Event.Text)
	case e.Event.Kind == Lost || e.Event.Kind == MonitorLost && g.frames:
		what := map[EventKind]string{Lost: "entries are missing", MonitorLost: "frames of the bus monitor are missing"}
		g.note(fmt.Sprintf("%s: about tick %d (%s), %d %s: %s", g.r.name, e.Event.Tick,
			g.r.Header.seconds(e.Event.Tick), e.Event.Count, what[e.Event.Kind], e.Event.Text))
	}
	return g.Exporter.Write(e)
}

// writeTick exports a tick and finds missing ticks before it.
func (g *gapFinder) writeTick(e *Entry) error {
	k := e.Tick.Index
	if g.ticks && k != g.next || !g.ticks && g.lost {
		e.Tick.Flags |= AfterGap
	}
	if k != g.next && !g.marked {
		text := fmt.Sprintf("tick %d follows tick %d", k, g.next-1)
		if k > g.next {
			text = g.r.Header.missingTicks(g.next, k-1)
		}
		if err := g.mark(Lost, g.next, g.r.name+": "+text); err != nil {
			return err
		}
	}

	g.next, g.ticks, g.marked = k+1, true, false
	return g.Exporter.Write(e)
}

// mark notes a gap that the record has no event of, and exports an event for it.
func (g *gapFinder) mark(kind EventKind, tick int64, text string) error {
	g.note(text)
	return g.Exporter.Write(&Entry{Kind: EventEntry, Event: Event{Kind: kind, Tick: tick, Text: text}})
}

// note adds a gap to the error.
func (g *gapFinder) note(text string) {
	if g.gaps.Count++; len(g.gaps.Gaps) < maxGaps {
		g.gaps.Gaps = append(g.gaps.Gaps, text)
	}
}

// err returns the error for the gaps found; nil if there is none.
func (g *gapFinder) err() error {
	if g.gaps.Count == 0 {
		return nil
	}
	return &g.gaps
}
