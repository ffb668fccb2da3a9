package virtual

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/io/sigmap"
	"lockstep/model/kernel"
	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// Replay runs a record again: the inputs of every tick, decoded from the frames that
// came in, through the same kernel, and its outputs into the frames that went out.
type Replay struct {
	Record string // file
	Out    string // CSV file of all ports, as replayed; "" none, "-" standard output
}

// replay is a Replay at work.
type replay struct {
	in     *record.Reader
	h      *bench.Handover
	kernel *kernel.Kernel
	u, y   []float64
	out    *table
	ticks  int64
	frames int64
	last   int64 // tick stepped to

	disturbed
}

// Replayed counts what a replay has found identical, bit for bit.
type Replayed struct {
	Ticks, Frames int64
}

func (r Replayed) String() string {
	return fmt.Sprintf("identical: %d ticks, %d frames", r.Ticks, r.Frames)
}

// DifferenceError is the first difference between a record and its replay.
type DifferenceError struct {
	Tick int64
	Of   string // the input, output, frame or change that differs
	Err  error
}

func (e *DifferenceError) Error() string { return e.Err.Error() }
func (e *DifferenceError) Unwrap() error { return e.Err }

// GapError says that a record lacks what follows a tick.
type GapError struct {
	Tick int64 // the last identical one
	Err  error
}

func (e *GapError) Error() string { return e.Err.Error() }
func (e *GapError) Unwrap() error { return e.Err }

func difference(tick int64, of, format string, args ...any) error {
	return &DifferenceError{tick, of, fmt.Errorf(format, args...)}
}

func gap(tick int64, format string, args ...any) error {
	return &GapError{tick, fmt.Errorf(format, args...)}
}

// frameID is the identifier of a frame as errors call it.
func frameID(id uint32) string { return fmt.Sprintf("0x%X", id&can.MaskEFF) }

// Run replays and returns how much was identical. An *Exit with code 1 has the first
// difference, or what is missing in the record.
func (p Replay) Run() (same Replayed, err error) {
	r := &replay{}
	if r.in, err = record.Open(p.Record); err != nil {
		return same, err
	}
	defer r.in.Close()
	if err := r.prepare(); err != nil {
		return same, fmt.Errorf("replay: %s: %w", p.Record, err)
	}
	if err := r.create(p.Out); err != nil {
		return same, err
	}
	err = r.run()
	if r.out != nil {
		err = errors.Join(err, r.out.close())
	}
	if err != nil {
		return same, &host.Exit{Code: 1, Err: fmt.Errorf("replay: %s: %w", p.Record, err)}
	}
	return Replayed{r.ticks, r.frames}, nil
}

// prepare makes the kernel and the signal maps of the files in the record.
func (r *replay) prepare() error {
	h := &r.in.Header
	var b *bench.Bench
	files := map[string]bench.FileContent{}
	var scenario *record.File
	for _, f := range h.Files {
		switch f.Role {
		case "bench":
			var err error
			if b, err = bench.Parse(f.Name, "", f.Text); err != nil {
				return err
			}
		case "scenario":
			scenario = &f
		default:
			files[f.Name] = bench.FileContent{Shown: f.Name, Data: f.Text}
		}
	}
	if b == nil {
		return errors.New("there is no bench in it")
	}
	b.Files = files
	for i := range b.Buses { // as they were, whatever -bus was
		if i < len(h.Buses) {
			b.Buses[i].Interface.Text = h.Buses[i].Interface
		}
	}
	var err error
	if r.h, err = bench.Prepare(b); err != nil {
		return err
	}
	switch got := bench.DigestOfData(r.h.Tables); {
	case h.GOARCH != runtime.GOARCH:
		return fmt.Errorf("made on %s, this is %s: results are the same bit for bit on one architecture only", h.GOARCH, runtime.GOARCH)
	case got != h.Hashes["tables"]:
		return fmt.Errorf("made by %s, whose matrices differ from those of this version: replay it with that one", h.Version)
	}
	r.kernel = kernel.New(r.h.Tables)
	m, p := r.kernel.Dims()
	r.u, r.y = make([]float64, m), make([]float64, p)
	copy(r.u, r.h.Tables.Start)
	return r.disturb(scenario)
}

func (r *replay) create(file string) (err error) {
	if file == "" {
		return nil
	}
	head := []string{"time[s]"}
	for _, s := range slices.Concat(r.in.Header.Outputs, r.in.Header.Inputs) {
		head = append(head, s.Name+"["+s.Unit+"]")
	}
	r.out, err = newTable(file, head)
	return err
}

// run goes through the record until its end or the first difference.
func (r *replay) run() error {
	for {
		e, err := r.in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.entry(e)
		}
		if err != nil {
			return err
		}
	}
	if torn := r.in.Torn(); torn != "" {
		return gap(r.last, "identical up to tick %d, %d frames, but: %s", r.last, r.frames, torn)
	}
	return nil
}

func (r *replay) entry(e *record.Entry) error {
	switch {
	case e.Kind == record.TickEntry:
		return r.tick(&e.Tick)
	case e.Kind == record.FrameEntry && e.Frame.Other:
		return nil // it never reached the plant
	case e.Kind == record.FrameEntry && e.Frame.Sent:
		return r.sent(&e.Frame)
	case e.Kind == record.FrameEntry && int(e.Frame.Bus) < len(r.h.Maps):
		return r.received(&e.Frame)
	case e.Kind == record.EventEntry && e.Event.Kind == record.Parameter:
		return r.command(&e.Event)
	case e.Kind == record.EventEntry && e.Event.Kind == record.Fault:
		return r.changed(&e.Event)
	case e.Kind == record.EventEntry && (e.Event.Kind == record.Lost || e.Event.Kind == record.Damage):
		return gap(r.last, "identical up to tick %d, %d frames; then the record has a gap: %s, %d: %s",
			r.last, r.frames, e.Event.Kind, e.Event.Count, e.Event.Text)
	}
	return nil
}

// tick steps the plant and compares bits.
func (r *replay) tick(t *record.Tick) error {
	if t.Index != r.last+1 {
		return gap(r.last, "identical up to tick %d; the next in the record is %d", r.last, t.Index)
	}
	if err := r.begun(t.Index); err != nil {
		return err
	}
	if t.Flags&record.Missed == 0 { // as the loop does it
		for _, m := range r.h.Maps {
			m.Tick(r.u, t.Index)
		}
	}
	u := r.set.Inputs(t.Index, r.u)
	for i, v := range t.U {
		if math.Float64bits(v) != math.Float64bits(u[i]) {
			name := r.in.Header.Inputs[i].Name
			return difference(t.Index, name, "the first difference is at tick %d: input %s is %v, the frames received say %v", t.Index, name, v, u[i])
		}
	}
	r.kernel.Step(r.y, u)
	r.set.Signals(t.Index, r.y)
	r.last, r.ticks = t.Index, r.ticks+1
	for i, v := range t.Y {
		if math.Float64bits(v) != math.Float64bits(r.y[i]) {
			name := r.in.Header.Outputs[i].Name
			return difference(t.Index, name, "the first difference is at tick %d: output %s was %v, is %v", t.Index, name, v, r.y[i])
		}
	}
	if r.out != nil {
		r.out.number(float64(t.Index*r.in.Header.Period) / 1e9)
		for _, v := range slices.Concat(r.y, u) {
			r.out.number(v)
		}
		r.out.end()
	}
	return nil
}

// sent encodes a frame that went out, or that no bus took, and compares bytes.
func (r *replay) sent(f *record.Frame) error {
	if int(f.Bus) >= len(r.h.Maps) {
		return difference(f.Tick, frameID(f.ID), "tick %d: a frame on bus %d of %d", f.Tick, f.Bus, len(r.h.Maps))
	}
	if f.Tick != r.last && !f.Safe {
		return gap(r.last, "identical up to tick %d; the next in the record, as its frames say, is %d", r.last, f.Tick)
	}
	b, m, acts := int(f.Bus), r.h.Maps[f.Bus], f.Tick == r.last // as the loop does it
	if err := r.inOrder(f, acts); err != nil || f.Copy {
		return err
	}
	i := slices.IndexFunc(m.Tx, func(t sigmap.Tx) bool { return t.ID == f.ID })
	if i < 0 {
		return difference(f.Tick, frameID(f.ID), "tick %d: frame %s was sent, the bench has none such", f.Tick, frameID(f.ID))
	}
	y := r.y
	if f.Safe {
		y = r.h.Loop.Safe.Values
	}
	var got can.Frame
	if acts {
		r.set.Before(b, i)
	}
	made, withheld := m.Encode(&got, i, f.Tick, y, acts && !f.Safe), false
	if made && acts {
		r.again, withheld = r.set.Sent(&got, b, i, f.Tick)
		r.frame = got
	}
	if !made || got != f.Frame || withheld != f.Withheld {
		return differs(f, m.Tx[i].Name, &got, withheld)
	}
	r.frames++
	return nil
}
