package main

import (
	"slices"
	"strings"
	"testing"
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
