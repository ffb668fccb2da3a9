package network

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Commands of SCPI-1999 that most supplies take.
var (
	defaultOn  = []string{"OUTP ON"}
	defaultOff = []string{"OUTP OFF"}
	defaultSet = []string{"VOLT %g", "OUTP ON"}
)

// instrument switches a supply that takes SCPI over TCP. It connects for each change, so an instrument that was off
// in the meantime does no harm.
type instrument struct{ *SupplySpec }

// Set sends the commands of a supply, and asks for an error.
func (p *instrument) Set(s Supply) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("scpi %s: %w", p.SCPI, err)
		}
	}()
	end := time.Now().Add(p.Timeout)
	conn, err := net.DialTimeout("tcp", p.SCPI, p.Timeout)
	if err != nil {
		if op := new(net.OpError); errors.As(err, &op) {
			err = op.Err // without the address, which the message has
		}
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(end) // fails on a closed connection only
	commands := p.commands(s)
	if p.Check {
		commands = append(commands, "SYST:ERR?")
	}
	if _, err := conn.Write([]byte(strings.Join(commands, "\n") + "\n")); err != nil || !p.Check {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if wait := net.Error(nil); errors.As(err, &wait) && wait.Timeout() {
		return fmt.Errorf("no answer to SYST:ERR? within %v", p.Timeout)
	}
	if err != nil {
		return fmt.Errorf("the answer to SYST:ERR? ends early: %w", err)
	}
	if code, _, _ := strings.Cut(strings.TrimSpace(answer), ","); strings.Trim(code, "+-0") != "" || code == "" {
		return fmt.Errorf("%s is refused: %.200q", strings.Join(p.commands(s), "; "), strings.TrimSpace(answer))
	}
	return nil
}

// commands returns the commands of a supply.
func (p *instrument) commands(s Supply) (list []string) {
	of := func(given, absent []string) []string {
		if len(given) > 0 {
			return given
		}
		return absent
	}
	v, volts := s.Volts()
	switch {
	case volts:
		for _, c := range of(p.SupplySpec.Set, defaultSet) {
			if strings.Contains(c, "%g") {
				c = fmt.Sprintf(c, v)
			}
			list = append(list, c)
		}
		return list
	case s == SupplyOff:
		return append(list, of(p.Off, defaultOff)...)
	}
	return append(list, of(p.On, defaultOn)...)
}

// Close does nothing: each change has its own connection.
func (p *instrument) Close() error { return nil }
