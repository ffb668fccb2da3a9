package network

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// open opens the switch of a spec.
func open(t *testing.T, p *SupplySpec) Switch {
	t.Helper()
	s, err := p.Open(SupplyOn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// script writes a program that appends its arguments to the file "calls" in its folder.
func script(t *testing.T, body string) *SupplySpec {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "supply.sh"), []byte("#!/bin/sh\necho \"$@\" >> calls\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return &SupplySpec{Exec: []string{filepath.Join(dir, "supply.sh"), "-v"}, Dir: dir, Timeout: time.Minute}
}

func TestProgramIsCalledWithTheSupply(t *testing.T) {
	p := script(t, "")
	s := open(t, p)
	for _, supply := range []Supply{SupplyOff, SupplyOn, 905} {
		if err := s.Set(supply); err != nil {
			t.Fatal(err)
		}
	}
	calls, err := os.ReadFile(filepath.Join(p.Dir, "calls"))
	if want := "-v off\n-v on\n-v 9.05\n"; err != nil || string(calls) != want {
		t.Errorf("calls %q, %v; want %q", calls, err, want)
	}
}

func TestProgramThatFailsIsReportedInOneLine(t *testing.T) {
	slow := script(t, "sleep 1000 & wait")
	slow.Timeout = 300 * time.Millisecond
	missing := &SupplySpec{Exec: []string{"/no/such/supply"}, Dir: t.TempDir(), Timeout: time.Minute}
	for _, c := range []struct {
		p    *SupplySpec
		want []string
	}{
		{script(t, "echo no relay >&2; exit 3"), []string{"supply.sh off: exit status 3", `"no relay"`}},
		{slow, []string{"supply.sh off: no end within 300ms; it was killed"}},
		{missing, []string{"/no/such/supply", "no such file"}},
	} {
		err := open(t, c.p).Set(SupplyOff)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q, want a line with %q", err, want)
			}
		}
	}
}

// supply is an instrument that answers SYST:ERR? with an answer, and reports the lines that it gets; "": it does not answer.
func supply(t *testing.T, answer string) (address string, lines chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	lines = make(chan string, 16)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			from := bufio.NewScanner(conn)
			for from.Scan() {
				if lines <- from.Text(); from.Text() == "SYST:ERR?" && answer != "" {
					_, _ = conn.Write([]byte(answer))
				}
			}
			conn.Close()
		}
	}()
	return l.Addr().String(), lines
}

func TestInstrumentGetsTheCommandsOfTheSupply(t *testing.T) {
	address, lines := supply(t, "+0,\"No error\"\r\n")
	p := &SupplySpec{SCPI: address, Set: []string{"INST OUT1", "VOLT %g"}, Check: true, Timeout: time.Minute}
	s := open(t, p)
	for _, c := range []struct {
		supply Supply
		want   []string
	}{{SupplyOff, []string{"OUTP OFF", "SYST:ERR?"}}, {SupplyOn, []string{"OUTP ON", "SYST:ERR?"}}, {1320, []string{"INST OUT1", "VOLT 13.2", "SYST:ERR?"}}} {
		if err := s.Set(c.supply); err != nil {
			t.Errorf("%v: %v", c.supply, err)
		}
		for _, want := range c.want {
			if got := <-lines; got != want {
				t.Errorf("%v: the instrument got %q, want %q", c.supply, got, want)
			}
		}
	}
}

func TestInstrumentThatFailsIsReportedInOneLine(t *testing.T) {
	refuses, _ := supply(t, "-222,\"Data out of range\"\n")
	silent, _ := supply(t, "")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for _, c := range []struct {
		address, want string
		timeout       time.Duration
	}{
		{refuses, `OUTP OFF is refused: "-222,\"Data out of range\""`, time.Minute},
		{silent, "no answer to SYST:ERR? within 200ms", 200 * time.Millisecond},
		{closed.Addr().String(), "connection refused", time.Minute},
	} {
		err := open(t, &SupplySpec{SCPI: c.address, Check: true, Timeout: c.timeout}).Set(SupplyOff)
		if err == nil || !strings.HasPrefix(err.Error(), "scpi "+c.address+": ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want a line with %q", err, c.want)
		}
	}
}

func TestMissingGPIOChipIsNamed(t *testing.T) {
	for _, chip := range []string{"/dev/no-such-gpiochip", "/dev/null"} {
		_, err := (&SupplySpec{Chip: chip, Line: 4}).Open(SupplyOn)
		if err == nil || !strings.Contains(err.Error(), chip) {
			t.Errorf("%s: %v, want an error that names the chip", chip, err)
		}
	}
}
