package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"lockstep/io/can"
	"lockstep/rt/bench"
	"lockstep/rt/box"
	"lockstep/rt/ecu"
	"lockstep/rt/host"
)

func defineECU(a *args) func() error {
	a.required = "bus"
	bus := a.String("bus INTERFACE", "", "CAN interface, like vcan0")
	at := a.String("box ADDRESS:PORT", "", "UDP address at which the virtual box of the unit listens, for a bench with wheel speeds and valves by wire")
	var set []string
	known := ""
	for _, name := range ecu.Names() {
		if text := ecu.Describe(name); text != "" {
			known += "; " + name + ": " + text
		}
	}

	a.Func("set",
		"set a parameter of the unit, `NAME=VALUE` (repeatable)"+known, func(text string) error {
			if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
				return fmt.Errorf("%q is not NAME=VALUE, like slip=0.14", text)
			}
			set = append(set, text)
			return nil
		})
	until := a.Int("until N", -1, "file descriptor of a pipe; the unit ends when the pipe is closed (for the process that starts it)")

	return func() error {
		if !slices.Contains(ecu.Names(), a.operands[0]) {
			return fmt.Errorf("ecu: no control unit %q; there are: %s", a.operands[0], strings.Join(ecu.Names(), ", "))
		}
		var settings []ecu.Setting
		for _, text := range set {
			name, value, _ := strings.Cut(text, "=")
			s, err := bench.ReadSetting(a.operands[0], name, value)
			if err != nil {
				return err
			}
			settings = append(settings, s)
		}
		if err := ecu.Check(a.operands[0], settings); err != nil {
			return err
		}
		// The name of the first thread is the name in ps; prctl can set it only from that thread.
		// Without /proc the name of the program stays.
		_ = os.WriteFile("/proc/self/comm", []byte("lockstep-ecu"), 0)
		line, err := ecu.Open(*bus)
		if errors.Is(err, ecu.ErrNoCAN) {
			err = fmt.Errorf("%w: %s; on a pair, lockstep run starts this control unit itself", err, can.HelpWithoutCAN())
		}
		if err != nil {
			return &host.Exit{Code: 3, Err: err}
		}
		if strings.HasPrefix(*bus, "fd:") { // the reader of the output may end before the unit
			signal.Ignore(syscall.SIGPIPE)
		}
		var wires ecu.Wires
		if *at != "" {
			s, err := box.Listen(*at)
			if err != nil {
				return &host.Exit{Code: 3, Err: err}
			}
			defer s.Close()
			wires = s
		}
		ctx, end := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer end()
		if *until >= 0 {
			go func() {
				_, _ = io.Copy(io.Discard, os.NewFile(uintptr(*until), "pipe"))
				end()
			}()
		}

		return exit1(ecu.Run(a.operands[0], line, wires, plainOut, ctx.Done(), settings...))
	}
}
