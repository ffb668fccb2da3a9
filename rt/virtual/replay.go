package virtual

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/io/sigmap"
	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/checkpoint"
	"lockstep/rt/fault"
	"lockstep/rt/host"
	"lockstep/rt/network"
	"lockstep/rt/recorder"
	"lockstep/rt/tableset"
)

// Replay computes the run of a record again with the prepared data of the run: it decodes the received
// frames, steps the same kernel, and encodes the sent frames. It compares all of them with the record,
// which may come from another architecture.
type Replay struct {
	Record string // file of the record
	Out    string // CSV file of all ports, as computed; "": none; "-": standard output
	SI     bool   // Out in SI units, not in the declared ones

	Progress func(read, size int64) // called with the bytes read of the record, of size; nil: not called
}

// replay is a running Replay.
type replay struct {
	in     *record.Reader
	h      *bench.Handover
	kernel *kernel.Sequence
	u, y   []float64
	inputs *rt.Inputs
	out    portTable
	last   int64 // last tick stepped

	slots   []*kernel.Kernel // of the last two changes of parameters, by phase
	tables  *bench.TableCoder
	changed int    // number of those changes
	offered string // change that the next step takes over; "": none
	stores  bool   // the kernel has room for snapshots

	begin *checkpoint.Plan // of a record that begins after the start of its run, until its state is loaded; nil: none

	Replayed

	// The faults as in the loop, and their effects that the record has not shown yet.
	set          *fault.Set
	network      *network.Machine // nil: the bench has no network
	names        *recorder.EventLog
	started      int64          // last tick begun
	changes      []record.Event // state changes of faults at the start of that tick
	copies       []record.Frame // frames that reach the plant changed, again or late at that tick
	frame        can.Frame      // last frame sent
	copiesLeft   int64          // further times that this frame must be sent
	pendingError error          // difference that counts only if another tick follows: no fault acts after the end
}

// Replayed counts the ticks and frames that a replay found identical, bit for bit.
type Replayed struct {
	Ticks, Frames int64
}

func (r Replayed) String() string {
	return fmt.Sprintf("identical: %d ticks, %d frames", r.Ticks, r.Frames)
}

// DifferenceError is the first difference between a record and its replay.
type DifferenceError struct {
	Tick int64
	Of   string // input, output, frame or change that differs; "": the record ends after the tick
	Err  error
}

func (e *DifferenceError) Error() string { return e.Err.Error() }
func (e *DifferenceError) Unwrap() error { return e.Err }

func difference(tick int64, of, format string, args ...any) error {
	return &DifferenceError{tick, of, fmt.Errorf(format, args...)}
}

// firstDifference returns a difference whose text begins with its tick.
func firstDifference(tick int64, of, format string, args ...any) error {
	return difference(tick, of, "the first difference is at tick %d: %s", tick, fmt.Sprintf(format, args...))
}

// incomplete returns the error of a record that has a gap or ends after the last tick.
func (r *replay) incomplete(format string, args ...any) error {
	return difference(r.last, "", "identical up to tick %d%s", r.last, fmt.Sprintf(format, args...))
}

// Run replays the record and returns the counts. The error is an *Exit with code 1 for a difference
// or an incomplete record.
func (p Replay) Run() (same Replayed, err error) {
	r := &replay{}
	if err := bench.CheckFile("replay", p.Record, "record"); err != nil {
		return same, err
	}
	if r.in, err = record.Open(p.Record); err != nil {
		return same, err
	}
	defer r.in.Close()
	r.in.Progress = p.Progress
	if err := r.prepare(); err != nil {
		return same, fmt.Errorf("replay: %s: %w", p.Record, err)
	}
	if r.out, err = newPortTable(p.Out, r.h.Tables, p.SI); err != nil {
		return same, err
	}
	defer r.out.discard()
	if err := errors.Join(r.run(), r.out.close()); err != nil {
		return same, &host.Exit{Code: 1, Err: fmt.Errorf("replay: %s: %w", p.Record, err)}
	}
	return r.Replayed, nil
}

// prepare makes the kernel, the signal maps and the faults from the hand-over in the record.
func (r *replay) prepare() (err error) {
	if r.h, err = bench.FromRecord(r.in, host.Version()); err != nil {
		return err
	}
	r.kernel = r.h.Plant()
	r.tables = bench.NewTableCoder(r.h)
	r.slots = make([]*kernel.Kernel, tableset.Slots*r.kernel.SetSize())
	m, p := r.kernel.Dims()
	r.u, r.y = make([]float64, m), make([]float64, p)
	copy(r.u, r.h.Tables.Start)
	r.inputs = rt.NewInputs(r.h.Loop.Inputs, r.h.Maps, r.h.Tables.PeriodNs, r.h.Loop.Start, r.kernel)
	if r.stores = len(r.h.Loop.Faults.States) > 0 || r.h.Begin != nil; r.stores {
		r.kernel.ReserveSnapshots(fault.MaxSnapshots)
	}
	r.names = recorder.NewEventLog(r.h)
	r.set, err = fault.New(r.h.Loop.Faults, fault.System{
		PeriodNs: r.h.Tables.PeriodNs, M: m, P: p, Maps: r.h.Maps, Plant: r.kernel,
	})
	if err == nil {
		err = r.set.CheckStates() // of a record that was changed
	}
	if err == nil {
		r.network, err = network.New(r.h.Loop.Network, r.h.Maps)
	}
	if err == nil && r.h.Begin != nil {
		r.begin = rt.PlanCheckpoint(r.kernel, r.h.Maps, r.inputs, r.set, r.network, &r.u, &r.y)
	}
	return err
}

// load starts the replay from the state in the record, with the tables in a slot; -1: those known before the run.
func (r *replay) load(slot int) error {
	b := r.h.Begin
	if err := r.begin.Load(b.State, b.Layout); err != nil {
		if v := r.in.Header.Version; v != host.Version() {
			return difference(b.Tick, "", "made by %s; this version cannot load the state at its start: replay it with that version", v)
		}
		return difference(b.Tick, "", "made by this version, but the state at its start cannot be loaded: %w", err)
	}
	r.kernel.LoadState(slot)
	if r.network != nil {
		r.network.ShowState()
	}
	r.last, r.started, r.begin = b.Tick-1, b.Tick-1, nil
	return nil
}

// run replays the record until its end or the first difference.
func (r *replay) run() error {
	for {
		e, err := r.in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.replayEntry(e)
		}
		if err != nil {
			return err
		}
	}

	if torn := r.in.Torn(); torn != "" {
		return r.incomplete(", %d frames, but: %s", r.Frames, torn)
	}
	return nil
}

func (r *replay) replayEntry(e *record.Entry) error {
	if r.begin != nil && !(e.Kind == record.EventEntry && recorder.DigestOfSet(e.Event.Text) != "") {
		if err := r.load(-1); err != nil {
			return err
		}
	}
	switch {
	case e.Kind == record.TickEntry:
		return r.checkTick(&e.Tick)
	case e.Kind == record.FrameEntry && e.Frame.Other:
		return nil // a monitored frame, which the loop did not receive
	case e.Kind == record.FrameEntry && e.Frame.Sent:
		return r.checkSentFrame(&e.Frame)
	case e.Kind == record.FrameEntry && int(e.Frame.Bus) < len(r.h.Maps):
		return r.receiveFrame(&e.Frame)
	case e.Kind == record.EventEntry && e.Event.Kind == record.Parameter:
		return r.applyCommand(&e.Event)
	case e.Kind == record.EventEntry && e.Event.Kind == record.Fault:
		return r.checkFaultChange(&e.Event)
	case e.Kind == record.EventEntry && (e.Event.Kind == record.Lost || e.Event.Kind == record.Damage):
		return r.incomplete(", %d frames; then the record has a gap: %s, %d: %s", r.Frames, e.Event.Kind, e.Event.Count, e.Event.Text)
	}

	return nil
}

// checkTick steps the plant and compares inputs and outputs bit for bit.
func (r *replay) checkTick(t *record.Tick) error {
	if t.Index != r.last+1 {
		return r.incomplete("; the next tick in the record is %d", t.Index)
	}
	if err := r.checkTickStart(t.Index); err != nil {
		return err
	}
	if t.Flags&record.Missed == 0 { // as in the loop
		for _, m := range r.h.Maps {
			m.Tick(r.u, t.Index)
		}
	}

	u := r.set.DisturbInputs(t.Index, r.inputs.Advance(t.Index, r.u, r.set))
	for i, v := range t.U {
		if differs(v, u[i]) {
			p := &r.h.Tables.Inputs[i]
			was, is := formatBoth(p, v, u[i])
			return firstDifference(t.Index, p.Name, "input %s is %s in the record, %s by the frames received", p.Name, was, is)
		}
	}

	r.kernel.Step(r.y, r.inputs.Command(u, r.set))
	if err := r.checkOffer(t.Index); err != nil {
		return err
	}
	r.set.DisturbSignals(t.Index, r.y)
	r.last, r.Ticks = t.Index, r.Ticks+1
	for i, v := range t.Y {
		if differs(v, r.y[i]) {
			p := &r.h.Tables.Outputs[i]
			was, is := formatBoth(p, v, r.y[i])
			return firstDifference(t.Index, p.Name, "output %s is %s in the record, %s in the replay", p.Name, was, is)
		}
	}

	if r.out.csvTable != nil {
		r.out.row(float64(t.Index*r.in.Header.Period)/1e9, r.y, u)
	}

	return nil
}

// differs reports whether two values differ in a bit. The bits of a NaN depend on the processor.
func differs(a, b float64) bool {
	return math.Float64bits(a) != math.Float64bits(b) && !(math.IsNaN(a) && math.IsNaN(b))
}

// formatBoth formats two values of a port that differ in some bit: with nine digits in its declared
// unit, or with all digits in SI if nine are equal.
func formatBoth(p *units.Port, a, b float64) (string, string) {
	shown := p.DeclaredUnit()
	if x, y := shown.Format(a), shown.Format(b); x != y {
		return x, y
	}
	return units.WithUnit(fmt.Sprint(a), p.Unit), units.WithUnit(fmt.Sprint(b), p.Unit)
}

// checkSentFrame encodes a frame that was sent, or that the bus refused, and compares the bytes.
func (r *replay) checkSentFrame(f *record.Frame) error {
	if int(f.Bus) >= len(r.h.Maps) {
		return difference(f.Tick, can.FormatID(f.ID), "tick %d: a frame on bus %d of %d", f.Tick, f.Bus, len(r.h.Maps))
	}
	if f.Tick != r.last && !f.Safe {
		return r.incomplete("; the next tick in the record, by its frames, is %d", f.Tick)
	}
	b, m, acts := int(f.Bus), r.h.Maps[f.Bus], f.Tick == r.last // as in the loop
	if err := r.checkOrder(f, acts); err != nil || f.Copy {
		return err
	}
	i := slices.IndexFunc(m.Tx, func(t sigmap.Tx) bool { return t.ID == f.ID })
	if i < 0 {
		return difference(f.Tick, can.FormatID(f.ID), "tick %d: frame %s was sent, but the bench sends no such frame", f.Tick, can.FormatID(f.ID))
	}
	y := r.y
	if f.Safe {
		y = r.h.Loop.Safe.Values
	}
	var got can.Frame
	if acts {
		r.set.PrepareCounters(b, i)
	}
	made, withheld := m.Encode(&got, i, f.Tick, y, acts && !f.Safe), false
	if made {
		r.network.Fill(b, i, &got)
		if !f.Lost && !f.Withheld {
			r.network.Confirm(b, i, f.Tick)
		}
	}
	if made && acts {
		r.copiesLeft, withheld = r.set.DisturbFrame(&got, b, i, f.Tick)
		r.frame = got
	}

	if !made || got != f.Frame || withheld != f.Withheld {
		return frameDifference(f, m.Tx[i].Name, &got, withheld)
	}
	r.Frames++
	return nil
}

// beginTick starts tick k, once.
func (r *replay) beginTick(k int64) {
	if r.started == k {
		return
	}
	r.started = k
	for c := (fault.Command{}); r.set.NextPlanned(k, &c); {
		if !r.network.Apply(&c, k) {
			r.set.Apply(&c)
		}
	}
	if r.network != nil {
		r.network.Begin(k)
		for c := (network.Change{}); r.network.NextChange(&c); {
		}
	}
	r.set.BeginTick(k, r.y)
	for c := (fault.Change{}); r.set.NextChange(&c); {
		r.changes = append(r.changes, record.Event{Count: c.Count, Text: c.State.String() + ": " + r.names.FaultText(c.Slot, c.State)})
	}
	var f can.Frame
	var at can.Stamp
	for b := range r.h.Maps {
		for again, ok := r.set.NextDelayed(b, &f, &at); ok; again, ok = r.set.NextDelayed(b, &f, &at) {
			r.decodeCopies(b, &f, again+1)
		}
	}
}

// decode decodes a received frame whose values act from an instant on.
func (r *replay) decode(b int, f *can.Frame, acts int64) {
	i, result := r.h.Maps[b].Decode(r.u, f)
	r.network.Receive(b, i, f)
	if i >= 0 && result.Valid() {
		r.inputs.Receive(b, i, acts, r.u)
	}
}

// decodeCopies decodes a frame n times that a fault changed, repeats or has delayed.
func (r *replay) decodeCopies(b int, f *can.Frame, n int64) {
	off := r.set.BusIsOff(b)
	for range n {
		if !off {
			r.decode(b, f, rt.OnGrid)
		}
		r.copies = append(r.copies, record.Frame{Bus: uint8(b), Withheld: off, Frame: *f})
	}
}

// decodeFurther decodes a frame to all nodes for each further message whose destination it is.
func (r *replay) decodeFurther(b int, f *can.Frame) {
	m, next := r.h.Maps[b], *f
	for i := m.FindToAll(f.ID); ; {
		if i = m.Further(i, &next); i < 0 {
			return
		}
		copies, withheld := r.set.FilterReceived(b, &next, can.Stamp{})
		if !withheld {
			i, _ := m.Decode(r.u, &next)
			r.network.Receive(b, i, &next)
		}
		r.copies = append(r.copies, record.Frame{Bus: uint8(b), Withheld: withheld, Frame: next})
		r.decodeCopies(b, &r.set.Copied, copies)
	}
}

// checkTickStart begins tick k. An error is an effect of a fault at its start that the record does
// not have.
func (r *replay) checkTickStart(k int64) error {
	r.beginTick(k)
	switch {
	case r.pendingError != nil:
		return r.pendingError
	case len(r.changes) > 0:
		return firstDifference(k, r.changes[0].Text, "the record has no %q", r.changes[0].Text)
	case len(r.copies) > 0:
		id := can.FormatID(r.copies[0].ID)
		return firstDifference(k, id, "the record has no frame %s that reached the plant changed, again or late", id)
	case r.copiesLeft > 0:
		id := can.FormatID(r.frame.ID)
		return difference(k, id, "the first difference is before tick %d: frame %s was not sent %d times more", k, id, r.copiesLeft)
	}

	return nil
}

// applyCommand applies a live change of the run.
func (r *replay) applyCommand(e *record.Event) error {
	if digest := recorder.DigestOfSet(e.Text); digest != "" {
		return r.changeTables(e, digest)
	}
	list, err := r.names.Translate(e.Text)
	if err != nil {
		return difference(e.Tick, e.Text, "tick %d: %w", e.Tick, err)
	}
	if r.started > r.last {
		return difference(e.Tick, e.Text, "tick %d: %q comes after the start of the tick", e.Tick, e.Text)
	}
	for i := range list {
		if list[i].Op == fault.TakeSnapshot && !r.stores {
			r.kernel.ReserveSnapshots(fault.MaxSnapshots)
			r.stores = true
		}
		r.network.Apply(&list[i], r.last+1)
		r.set.Apply(&list[i])
		if list[i].Op == fault.Restore && r.set.Obstacle != 0 {
			return difference(e.Tick, e.Text, "tick %d: %q is refused in the replay: %s", e.Tick, e.Text,
				r.h.Tables.Describe(kernel.Obstacle(r.set.Obstacle)))
		}
	}
	return nil
}

// changeTables makes the tables in the record take effect at the next step.
func (r *replay) changeTables(e *record.Event, digest string) error {
	data, err := r.in.Tables()
	if err != nil {
		return difference(e.Tick, e.Text, "tick %d: %w", e.Tick, err)
	}
	set, err := r.tables.Decode(data, digest)
	if err == nil && set.Phase > r.kernel.Phase() && r.begin == nil {
		err = fmt.Errorf("tables of phase %d in phase %d", set.Phase, r.kernel.Phase())
	}
	for i := 0; err == nil && i < len(set.Tables); i++ {
		err = set.Tables[i].Follows(r.h.Tables)
	}
	if err != nil {
		return difference(e.Tick, e.Text, "tick %d: %w", e.Tick, err)
	}
	slot := r.changed % tableset.Slots
	copy(r.slots[slot*r.kernel.SetSize():], set.Kernels())
	r.kernel.UseSlots(r.slots)
	r.changed++
	if r.begin != nil { // the tables in use when the record began
		return r.load(slot)
	}
	r.kernel.Offer(slot)
	r.offered = e.Text
	return nil
}

// checkOffer checks that the last change of parameters has taken effect at the last step, as in the run.
func (r *replay) checkOffer(tick int64) error {
	if waits, _ := r.kernel.Offered(); waits && r.offered != "" {
		return firstDifference(tick, r.offered, "%.60q has no effect in the replay", r.offered)
	}
	r.offered = ""
	return nil
}

// checkFaultChange compares a state change of a fault.
func (r *replay) checkFaultChange(e *record.Event) error {
	r.beginTick(r.last + 1)
	if len(r.changes) == 0 {
		return firstDifference(e.Tick, e.Text, "the record has %q", e.Text)
	}
	if want := r.changes[0]; e.Tick != r.started || e.Text != want.Text || e.Count != want.Count {
		return firstDifference(e.Tick, e.Text, "the record has %q after %d, at tick %d it is %q after %d",
			e.Text, e.Count, r.started, want.Text, want.Count)
	}

	r.changes = r.changes[1:]
	return nil
}

// receiveFrame decodes a received frame and checks whether it was withheld.
func (r *replay) receiveFrame(f *record.Frame) error {
	r.Frames++
	r.beginTick(r.last + 1)
	b, withheld := int(f.Bus), false
	switch {
	case !f.Copy:
		var copies int64
		if copies, withheld = r.set.FilterReceived(b, &f.Frame, can.Stamp{}); !withheld {
			r.decode(b, &f.Frame, f.Acts)
		}
		r.decodeCopies(b, &r.set.Copied, copies)
		r.decodeFurther(b, &f.Frame)
	case len(r.copies) > 0 && r.copies[0].Bus == f.Bus && r.copies[0].Frame == f.Frame:
		withheld = r.copies[0].Withheld
		r.copies = r.copies[1:]
	default:
		withheld = !f.Withheld
	}

	if withheld != f.Withheld && r.pendingError == nil {
		r.pendingError = firstDifference(f.Tick, can.FormatID(f.ID), "frame %s received: withheld %t, copy %t in the record, but not in the replay",
			can.FormatID(f.ID), f.Withheld, f.Copy)
	}

	return nil
}

// checkOrder checks a sent frame that is a copy or was held back, and that no such frame is missing
// before it.
func (r *replay) checkOrder(f *record.Frame, acts bool) error {
	b, off := int(f.Bus), false
	switch {
	case !f.Copy && r.copiesLeft > 0 || !f.Copy && acts && r.set.HasHeld(b, f.Tick):
		return firstDifference(f.Tick, can.FormatID(f.ID), "frame %s is in the record before one that had to be sent again",
			can.FormatID(f.ID))
	case !f.Copy:
		return nil
	case r.copiesLeft > 0:
		off = r.set.BusIsOff(b) // true only for a frame held back: others have no copies then
		r.copiesLeft--
	default:
		var ok bool
		if _, r.copiesLeft, ok = r.set.NextHeld(&r.frame, b, f.Tick); !ok || !acts {
			return firstDifference(f.Tick, can.FormatID(f.ID), "frame %s is in the record again", can.FormatID(f.ID))
		}
		off = r.set.BusIsOff(b)
	}

	if r.frame != f.Frame || off != f.Withheld {
		return frameDifference(f, can.FormatID(f.ID), &r.frame, off)
	}
	r.Frames++
	return nil
}

// frameDifference returns the error of a sent frame that differs.
func frameDifference(f *record.Frame, name string, got *can.Frame, withheld bool) error {
	withheldText := map[bool]string{true: ", withheld"}
	return firstDifference(f.Tick, name, "frame %s is % X%s in the record, % X%s in the replay",
		name, f.Data[:f.Len], withheldText[f.Withheld], got.Data[:got.Len], withheldText[withheld])
}
