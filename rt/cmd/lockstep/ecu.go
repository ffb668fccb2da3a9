package main

import (
	"errors"
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

const ecuUsage = "ecu NAME -bus NAME [-set PARAMETER=VALUE]"

func runECU(list []string) error {
	a := newArgs("ecu", ecuUsage)
	bus := a.String("bus", "", "CAN interface, like vcan0")
	var settings []ecu.Setting
	known := ""
	for _, name := range ecu.Names() {
		if text := ecu.Describe(name); text != "" {
			known += "; " + name + ": " + text
		}
	}
	a.Func("set", "give a parameter of the unit a value, `NAME=VALUE`, any number of times"+known, func(text string) error {
		s, err := ecu.ParseSetting(text)
		settings = append(settings, s)
		return err
	})
	until := a.Int("until", -1, "descriptor of a pipe with whose end the unit ends, too; for who starts it")
	if err := a.parse(list, 1, 1, os.Stdout); err != nil {
		return err
	}
	if !slices.Contains(ecu.Names(), a.names[0]) {
		return fmt.Errorf("ecu: no control unit %q; there are: %s", a.names[0], strings.Join(ecu.Names(), ", "))
	}
	if err := ecu.Check(a.names[0], settings); err != nil {
		return err
	}
	if *bus == "" {
		return errors.New("ecu: -bus is missing, like -bus vcan0")
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
	signals, stop := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if *until >= 0 {
		go func() {
			_, _ = io.Copy(io.Discard, os.NewFile(uintptr(*until), "pipe"))
			signals <- syscall.SIGHUP
		}()
	}
	go func() {
		<-signals
		close(stop)
	}()
	if err := ecu.Run(a.names[0], line, os.Stdout, stop, settings...); err != nil {
		return &host.Exit{Code: 1, Err: err}
	}
	return nil
}
