package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFlagsMayComeBeforeAndAfterArgumentsWithOneDashOrTwo(t *testing.T) {
	for _, line := range []string{
		"-bus drive=file:a,b.log -n 3 x.yaml", "--bus drive=file:a,b.log --n=3 x.yaml", "x.yaml -n 3 --bus drive=file:a,b.log", "-n 3 x.yaml -bus=drive=file:a,b.log",
	} {
		var buses []string
		number, ran := 0, false
		c := command{name: "try", operands: []string{"[BENCH]"}, define: func(a *args) func() error {
			best := false
			a.hostFlags(&buses, &best)
			a.IntVar(&number, "n N", 1, "a number")
			return func() error { ran = slices.Equal(a.operands, []string{"x.yaml"}); return nil }
		}}
		if err := c.args().execute(strings.Fields(line)); err != nil || !ran || number != 3 || !slices.Equal(buses, []string{"drive=file:a,b.log"}) {
			t.Errorf("try %s: %v, names right %v, -n %d, -bus %q", line, err, ran, number, buses)
		}
	}
}

// A negative number is an argument wherever it stands, unless a flag takes it as its value.
func TestANegativeNumberIsNoFlag(t *testing.T) {
	for line, want := range map[string]struct {
		operands string
		json     bool
		n        int
	}{
		"bench power -3 V":         {"bench power -3 V", false, 1},
		"-json bench power -.5 V":  {"bench power -.5 V", true, 1},
		"bench power -json -3 V":   {"bench power -3 V", true, 1},
		"-n -3 write t -40 -json":  {"write t -40", true, -3},
		"--n -3 -4 --json -5 -n=6": {"-4 -5", true, 6},
	} {
		var n *int
		var json *bool
		operands := ""
		c := command{name: "try", operands: []string{"WORD..."}, define: func(a *args) func() error {
			n, json = a.Int("n N", 1, "a number"), a.Bool("json", false, "a switch")
			return func() error { operands = strings.Join(a.operands, " "); return nil }
		}}
		if err := c.args().execute(strings.Fields(line)); err != nil || operands != want.operands || *json != want.json || *n != want.n {
			t.Errorf("try %s: %v, arguments %q, -json %v, -n %d", line, err, operands, *json, *n)
		}
	}
}

func TestMissingAndFurtherArgumentsAreNamed(t *testing.T) {
	for line, want := range map[string]string{
		"":          "try: an argument is missing; usage: lockstep try PLANT [BENCH]",
		"a b c d e": `try: "c" is one argument too many; usage: lockstep try PLANT [BENCH]`,
	} {
		c := command{name: "try", operands: []string{"PLANT", "[BENCH]"}, define: func(*args) func() error {
			return func() error { return nil }
		}}
		if err := c.args().execute(strings.Fields(line)); err == nil || err.Error() != want {
			t.Errorf("try %s: %v, want %s", line, err, want)
		}
	}
}

// A duration is written as in the files, or as Go writes it.
func TestADurationOfAFlagHasItsUnit(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"4s": 4e9, "4 s": 4e9, "50 ms": 50e6, "1h30m": 90 * time.Minute, "2 min": 2 * time.Minute,
		"4": 0, "0.4": 0, "4 m/s": 0, "-4 s": 0, "": 0,
	} {
		var d *time.Duration
		c := command{name: "try", define: func(a *args) func() error {
			d = a.duration("for 1s", 0, "length")
			return func() error { return nil }
		}}
		if err := c.args().execute([]string{"-for", text}); (err == nil) != (want > 0) || want > 0 && *d != want {
			t.Errorf("-for %q: %v (%v), want %v", text, *d, err, want)
		}
	}
}

// Package flag calls a value without a name "value", "string" or "int".
func TestEveryFlagNamesItsValue(t *testing.T) {
	for _, c := range commands() {
		for _, o := range c.args().options {
			if slices.Contains([]string{"value", "string", "int"}, o.Value) || strings.Contains(o.Name, " ") {
				t.Errorf("%s: -%s %q", c.name, o.Name, o.Value)
			}
		}
	}
}
