package gearbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"lockstep/rt/ecu/unit"
)

// rowsOf returns the rows of the guide's tables that begin with a cell, by that cell.
func rowsOf(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../bench/BENCH.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(text), "\n## Diagnosis of virtual control units\n")
	if !ok {
		t.Fatal("the guide has no section on the diagnosis")
	}
	part, _, _ = strings.Cut(part, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(part) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if strings.HasPrefix(line, "| ") {
			rows[cells[0]] = cells
		}
	}
	return rows
}

func TestGuideListsEveryTroubleCodeIdentifierAndRoutine(t *testing.T) {
	rows := rowsOf(t)
	for _, c := range eightSpeedCodes() {
		limp := "no"
		if c.Limp {
			limp = "yes"
		}
		want := fmt.Sprintf("0x%06X %d ms %d ms %d %s", c.Number, c.Fail.Milliseconds(), c.Pass.Milliseconds(), c.Trips, limp)
		row := rows[c.Name()]
		if len(row) != 7 || strings.Join([]string{row[1], row[3], row[4], row[5], strings.SplitN(row[6], ";", 2)[0]}, " ") != want {
			t.Errorf("%s: the guide has %q, want %s", c.Name(), row, want)
		}
	}
	for _, c := range newTruck(&unit.Base{}).(*truck).Memory.All() {
		row := rows[fmt.Sprint(c.Number>>5)]
		if len(row) != 4 || row[1] != fmt.Sprint(c.Number&31) || (row[3] == "yes") != c.Limp {
			t.Errorf("%s: the guide has %q", c.Name(), row)
		}
	}
	s := newAutomatic(&unit.Base{}).(*automatic)
	for _, d := range s.Server.Identifiers {
		if d.ID >= 0xF000 { // of every server
			continue
		}
		name := fmt.Sprintf("0x%04X", d.ID)
		row := rows[name]
		if len(row) != 5 {
			t.Errorf("the guide has no identifier %s", name)
			continue
		}
		size := 0
		if _, err := fmt.Sscanf(row[2], "%d", &size); err != nil {
			t.Error(err)
		}
		if n := len(d.Read()); n != size {
			t.Errorf("%s: the guide has %d bytes, the unit %d", name, size, n)
		}
	}
	for _, r := range s.Server.Routines {
		if name := fmt.Sprintf("0x%04X", r.ID); len(rows[name]) != 4 {
			t.Errorf("the guide has no routine %s", name)
		}
	}
}
