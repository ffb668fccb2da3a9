package bench

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
	h      *Handover
	kernel *kernel.Kernel
	u, y   []float64
	out    *table
	ticks  int64
	frames int64
	last   int64 // tick stepped to

	disturbed
}

// Run replays and returns how much was identical, bit for bit. An *Exit with code 1
// says where the first difference is, or what is missing in the record.
func (p Replay) Run() (same string, err error) {
	r := &replay{}
	if r.in, err = record.Open(p.Record); err != nil {
		return "", err
	}
	defer r.in.Close()
	if err := r.prepare(); err != nil {
		return "", fmt.Errorf("replay: %s: %w", p.Record, err)
	}
	if err := r.create(p.Out); err != nil {
		return "", err
	}
	err = r.run()
	if r.out != nil {
		err = errors.Join(err, r.out.close())
	}
	if err != nil {
		return "", &Exit{1, fmt.Errorf("replay: %s: %w", p.Record, err)}
	}
	return fmt.Sprintf("identical: %d ticks, %d frames", r.ticks, r.frames), nil
}

// prepare makes the kernel and the signal maps of the files in the record.
func (r *replay) prepare() error {
	h := &r.in.Header
	var b *Bench
	files := map[string]kept{}
	var scenario *record.File
	for _, f := range h.Files {
		switch f.Role {
		case "bench":
			var err error
			if b, err = parse(f.Name, "", f.Text); err != nil {
				return err
			}
		case "scenario":
			scenario = &f
		default:
			files[f.Name] = kept{f.Name, f.Text}
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
	if r.h, err = Prepare(b); err != nil {
		return err
	}
	switch got := digest(r.h.Tables); {
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
		return fmt.Errorf("identical up to tick %d, %d frames, but: %s", r.last, r.frames, torn)
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
		return fmt.Errorf("identical up to tick %d, %d frames; then the record has a gap: %s, %d: %s",
			r.last, r.frames, e.Event.Kind, e.Event.Count, e.Event.Text)
	}
	return nil
}

// tick steps the plant and compares bits.
func (r *replay) tick(t *record.Tick) error {
	if t.Index != r.last+1 {
		return fmt.Errorf("identical up to tick %d; the next in the record is %d", r.last, t.Index)
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
			return fmt.Errorf("the first difference is at tick %d: input %s is %v, the frames received say %v",
				t.Index, r.in.Header.Inputs[i].Name, v, u[i])
		}
	}
	r.kernel.Step(r.y, u)
	r.set.Signals(t.Index, r.y)
	r.last, r.ticks = t.Index, r.ticks+1
	for i, v := range t.Y {
		if math.Float64bits(v) != math.Float64bits(r.y[i]) {
			return fmt.Errorf("the first difference is at tick %d: output %s was %v, is %v", t.Index, r.in.Header.Outputs[i].Name, v, r.y[i])
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
		return fmt.Errorf("tick %d: a frame on bus %d of %d", f.Tick, f.Bus, len(r.h.Maps))
	}
	if f.Tick != r.last && !f.Safe {
		return fmt.Errorf("identical up to tick %d; the next in the record, as its frames say, is %d", r.last, f.Tick)
	}
	b, m, acts := int(f.Bus), r.h.Maps[f.Bus], f.Tick == r.last // as the loop does it
	if err := r.inOrder(f, acts); err != nil || f.Copy {
		return err
	}
	i := slices.IndexFunc(m.Tx, func(t sigmap.Tx) bool { return t.ID == f.ID })
	if i < 0 {
		return fmt.Errorf("tick %d: frame 0x%X was sent, the bench has none such", f.Tick, f.ID&can.MaskEFF)
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
