package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The virtual unit has its wires in real time: the images of a run reach the virtual box, which makes edges that tell
// the unit a wrong direction, and the unit sends the duties back.
func TestVirtualUnitHasItsWiresInRealTime(t *testing.T) {
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.LocalAddr().String()
	free.Close()
	dir := t.TempDir()
	file, scenario := filepath.Join(dir, "r.json"), filepath.Join(dir, "reversed.yaml")
	text := "scenario: reversed\nfor: 3 s\nfaults:\n  - {name: direction, signal: Wheel3.reversed, stuck: 1, at: 300 ms}\n"
	if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s := begin(t, nil, "run", "esc-wire-bench", "-bus", "box=udp:"+address, "-scenario", scenario, "-report", file)
	code := s.end()
	r := readReport(t, file)
	if code != 0 || r.Wire == nil || r.Wire.Sent == 0 || r.Wire.Received < r.Wire.Sent/2 || r.Wire.Foreign != 0 {
		t.Errorf("code %d, images %+v", code, r.Wire)
	}
	if !strings.Contains(r.Unit, "C0050-64") {
		t.Errorf("the unit has not seen the direction of the edges: %s", r.Unit)
	}
}

// A port that another process holds ends a run before its first tick.
func TestRunRefusesABoxWhosePortIsInUse(t *testing.T) {
	other, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	address := other.LocalAddr().String()
	out, errors, code := lockstep(t, "run", "esc-wire-bench", "-bus", "box=udp:"+address, "-for", "1s")
	if code != 3 || out != "" || strings.Count(errors, "\n") != 1 || !has(errors, "control unit esc", address, "address already in use", "-bus") {
		t.Errorf("code %d, %s%s", code, errors, out)
	}
}
