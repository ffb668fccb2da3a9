package network

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lockstep/model/units"
)

// ParseSupply reads off, on, or a voltage like "9 V".
func ParseSupply(text string) (Supply, error) {
	switch text {
	case "off":
		return SupplyOff, nil
	case "on":
		return SupplyOn, nil
	}
	v, err := units.Typed(text, "V")
	if err != nil || !(v > 0 && v <= MaxVolts) {
		return 0, fmt.Errorf("%.40q is neither off, on, nor a voltage up to %d V, like 9 V", strings.TrimSpace(text), MaxVolts)
	}
	return Supply(max(1, math.RoundToEven(float64(v*100)))), nil
}

// SupplySpec says how the supply of the unit under test is switched: by one of a program, an instrument and a line
// of a GPIO chip.
type SupplySpec struct {
	Exec []string // program and its arguments; it gets off, on or the voltage in V as a further argument
	Dir  string   // folder in which the program runs

	SCPI         string   // HOST:PORT of an instrument that takes SCPI over TCP
	On, Off, Set []string // its commands; %g in Set is the voltage, V
	Check        bool     // ask SYST:ERR? after the commands

	Chip      string // GPIO chip, like /dev/gpiochip0
	Line      uint32 // its line
	ActiveLow bool   // the line is low when the supply is on

	Timeout time.Duration // longest time of a change
	Stop    bool          // a failure ends the run; false: the run goes on
}

// Switch switches a supply. It is not for concurrent use.
type Switch interface {
	Set(s Supply) error // within the timeout; the error is one line
	Close() error
}

// Open returns the switch of a supply that is in a state. It changes a GPIO line only, to that state.
func (p *SupplySpec) Open(now Supply) (Switch, error) {
	switch {
	case len(p.Exec) > 0:
		return &program{p}, nil
	case p.SCPI != "":
		return &instrument{p}, nil
	}
	return openLine(p, now)
}

// Name returns what is switched, for messages.
func (p *SupplySpec) Name() string {
	switch {
	case len(p.Exec) > 0:
		return p.Exec[0]
	case p.SCPI != "":
		return "scpi " + p.SCPI
	}
	return fmt.Sprintf("line %d of %s", p.Line, p.Chip)
}

// program switches a supply by a program.
type program struct{ *SupplySpec }

// waitDelay is the time after the end of the program, or of the timeout, in which children of the program may still
// hold its output.
const waitDelay = 100 * time.Millisecond

// Set runs the program and waits for its end.
func (p *program) Set(s Supply) error {
	argument := s.String()
	if v, ok := s.Volts(); ok {
		argument = strconv.FormatFloat(v, 'g', -1, 64)
	}
	within, cancel := context.WithTimeout(context.Background(), p.Timeout)
	defer cancel()
	c := exec.CommandContext(within, p.Exec[0], append(append([]string{}, p.Exec[1:]...), argument)...)
	c.Dir, c.WaitDelay = p.Dir, waitDelay
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal of the terminal ends the run, not the program
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	out, err := c.CombinedOutput()
	ended := new(exec.ExitError)
	switch {
	case within.Err() != nil:
		return fmt.Errorf("%s %s: no end within %v; it was killed", p.Exec[0], argument, p.Timeout)
	case errors.As(err, &ended):
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s %s: %v: %.200q", p.Exec[0], argument, ended, first)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return err
	}
	return nil
}

// Close does nothing.
func (p *program) Close() error { return nil }
