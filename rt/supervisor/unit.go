package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/target"
	"lockstep/rt/unitprogram"
)

// startOwnUnit starts the control unit that belongs to the run: a virtual control unit on a pair, or a
// program on pairs and virtual CAN interfaces. On a card, the control unit is a real one.
func (r *Session) startOwnUnit(signals <-chan os.Signal) error {
	switch {
	case r.Unit != nil || r.Bench.Unit.Text == "": // StartNamedUnit has started it, or there is none
		return nil
	case r.Bench.Program != nil && (len(r.inherit.units) > 0 || r.states.hasVirtual()):
		return r.startProgram("", signals)
	case r.Bench.Program == nil && len(r.inherit.units) > 0:
		err := r.spawnUnit(r.inherit.units, r.Bench.ControlUnitArgs("fd:3")...)
		if err != nil || r.Bench.VirtualBox() == "" {
			return err
		}
		return r.awaitUnit(startTimeout, signals) // the port of its box may be in use
	}
	return nil
}

// spawnUnit starts this binary as the process of the control unit, which inherits files.
func (r *Session) spawnUnit(files []*os.File, args ...string) (err error) {
	start := func() { r.Unit, err = host.Spawn("", nil, files, args...) }
	if r.Options.Priority {
		host.WithPriority(start)
	} else {
		start()
	}
	if err != nil {
		return fmt.Errorf("control unit %s: %w", r.Bench.Unit.Text, err)
	}
	return nil
}

// lifePipe returns the end of a pipe that ends with this process, for a control unit that cannot see the
// end of the run on its bus. The caller closes it.
func (r *Session) lifePipe() (*os.File, error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("control unit %s: %w", r.Bench.Unit.Text, err)
	}
	r.inherit.life = theirs
	return ours, nil
}

// startProgram starts the program that is the control unit, and waits until it listens. bus is the
// interface of its first bus, "" for that of the bench. A *host.Exit has code 1 for a program that
// failed, and for a signal meanwhile.
func (r *Session) startProgram(bus string, signals <-chan os.Signal) error {
	s, err := unitprogram.SpecOf(r.Bench, r.Bench.HasUnit)
	if err != nil {
		return &host.Exit{Code: 2, Err: err}
	}
	s.CPU = r.Handover.Thread.CPU
	if bus != "" {
		s.Buses[0].Interface = bus
	}
	files := append([]*os.File{r.inherit.target[target.StatusFD-target.HandoverFD]}, r.inherit.units...)
	if len(r.inherit.units) == 0 {
		life, err := r.lifePipe()
		if err != nil {
			return err
		}
		defer life.Close()
		files = append(files, life)
	}
	if err := r.spawnUnit(files, unitprogram.RelayCommand, s.Arg()); err != nil {
		return err
	}
	if err := r.awaitUnit(max(startTimeout, s.Hang+time.Second), signals); err != nil {
		for _, line := range report.LastLines(r.unitOutput()) {
			fmt.Fprintf(r.Options.Out, "  %s\n", line)
		}
		if r.Unit.WaitDone(time.Second) && r.unitVerdict() != "" {
			err = errors.New("control unit " + r.unitVerdict())
		}
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}

// StartNamedUnit starts the control unit on the interface bus, also on a card, and waits until the unit
// listens. It does nothing for a unit on a pair or a bench without a unit.
func (r *Session) StartNamedUnit(bus string, signals <-chan os.Signal) error {
	if len(r.inherit.units) > 0 || r.Bench.Unit.Text == "" {
		return nil
	}
	if r.Bench.Program != nil {
		return r.startProgram(bus, signals)
	}
	life, err := r.lifePipe()
	if err != nil {
		return err
	}
	defer life.Close()
	if err := r.spawnUnit([]*os.File{life}, append(r.Bench.ControlUnitArgs(bus), "-until", "3")...); err != nil {
		return err
	}
	return r.awaitUnit(startTimeout, signals)
}

// awaitUnit waits until the unit listens; it prints a line then. A signal ends the wait.
func (r *Session) awaitUnit(longest time.Duration, signals <-chan os.Signal) error {
	name := r.Bench.Unit.Text
	for range longest / pollInterval {
		if len(r.Unit.Stdout.Bytes()) > 0 {
			return nil
		}
		select {
		case s := <-signals:
			return fmt.Errorf("control unit %s had not answered when the run was stopped: %v", name, s)
		default:
		}
		if r.Unit.WaitDone(pollInterval) {
			return fmt.Errorf("control unit %s: %s", name, r.Unit.HowEnded())
		}
	}
	return fmt.Errorf("control unit %s did not listen within %v", name, longest)
}

// unitVerdict returns the verdict of the relay on the program that is the control unit; "": none.
func (r *Session) unitVerdict() string {
	text, ok := strings.CutPrefix(r.Unit.Stderr.LastLine(), "lockstep: ")
	if r.Bench.Program == nil || r.Unit.Succeeded() || !ok {
		return ""
	}
	return text
}

// unitOutput returns the output of the program that is the control unit.
func (r *Session) unitOutput() string {
	if r.Unit == nil || r.Bench.Program == nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(r.Unit.Stderr.Bytes()), "\n"), "\n")
	if r.unitVerdict() != "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines, "\n")
}

// hasVirtual reports whether a bus of the run is on a virtual CAN interface.
func (s *busStates) hasVirtual() bool {
	return slices.ContainsFunc(s.buses, func(w *watchedBus) bool { return w.link.Virtual })
}

// reportUnit adds the end of the control unit. A run is not clean if its unit ended before it, or if the
// program that is the unit failed. A service manager that stops a run also sends SIGTERM to the unit,
// which then ends with exit status 0.
func (r *Session) reportUnit(v *report.Report) {
	if r.Unit == nil {
		return
	}
	name, relay := r.Bench.Unit.Text, ""
	if r.Bench.Program != nil {
		relay = "relay of " // without a verdict on the program, it is the relay that failed
	}
	early := r.unitEndedAt >= 0 && (v.RxFrames == 0 || r.unitEndedAt < v.SimTime)
	verdict := r.unitVerdict()
	v.UnitOutput = r.unitOutput()
	switch {
	case r.Unit.Killed:
		v.Unit = name + " did not answer and was killed"
	case verdict != "":
		v.Unit = verdict
	case early && !(r.Stop != "" && r.Unit.Succeeded()):
		first := ""
		if v.RxFrames == 0 {
			first = "before its first frame, "
		}
		v.Unit = fmt.Sprintf("%s%s ended %sat %.3f s: %s", relay, name, first, r.unitEndedAt, r.Unit.HowEnded())
	case r.Bench.Program != nil && !r.Unit.Succeeded():
		v.Unit = fmt.Sprintf("%s%s ended after the run: %s", relay, name, r.Unit.HowEnded())
	default:
		v.Unit = r.Unit.Stdout.LastLine()
		return
	}
	if v.Clean && !r.Unit.Killed {
		v.Clean, v.Ended = false, "control unit "+v.Unit
	}
}
