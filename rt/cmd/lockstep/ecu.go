package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"lockstep/rt/ecu"
	"lockstep/rt/host"
)

func defineECU(a *args) func() error {
	a.needed = "bus"
	bus := a.String("bus INTERFACE", "", "CAN interface, like vcan0")
	var settings []ecu.Setting
	known := ""
	for _, name := range ecu.Names() {
		if text := ecu.Describe(name); text != "" {
			known += "; " + name + ": " + text
		}
	}

	a.Func("set",
		"give a parameter of the unit a value, `NAME=VALUE`, any number of times"+known, func(text string) error {
			s, err := ecu.ParseSetting(text)
			settings = append(settings, s)
			return err
		})
	until := a.Int("until N", -1, "descriptor of a pipe with whose end the unit ends, too; for who starts it")

	return func() error {
		if !slices.Contains(ecu.Names(), a.names[0]) {
			return fmt.Errorf("ecu: no control unit %q; there are: %s", a.names[0], strings.Join(ecu.Names(), ", "))
		}
		if err := ecu.Check(a.names[0], settings); err != nil {
			return err
		}
		// The name in ps, of the first thread, which prctl would reach only from there.
		// Without /proc it stays that of the program.
		_ = os.WriteFile("/proc/self/comm", []byte("lockstep-ecu"), 0)
		line, err := ecu.Open(*bus)
		if err != nil {
			return &host.Exit{Code: 3, Err: err}
		}
		if strings.HasPrefix(*bus, "fd:") { // who started it and reads it may end before the drive
			signal.Ignore(syscall.SIGPIPE)
		}
		ctx, end := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer end()
		if *until >= 0 {
			go func() {
				_, _ = io.Copy(io.Discard, os.NewFile(uintptr(*until), "pipe"))
				end()
			}()
		}

		return exit1(ecu.Run(a.names[0], line, os.Stdout, ctx.Done(), settings...))
	}
}
