package port_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt/virtual"
)

// A log has a message to all for C1, a claim of an address of the bench by a lower NAME, and a request that the
// bench refuses. The claim is past: the bench keeps its address. The refusal goes nowhere and is counted.
func TestLogInPlaceOfTheBusHasAPort(t *testing.T) {
	dir, text := extendedFiles(t, longMessages, append(longReplacements(), "interface: pair", "interface: file:drive.log", "control_unit:", "# control_unit:")...)
	data := bytes.Repeat([]byte{0xFF}, 21)
	data[16] = 73
	log := "(1.000) can0 18ECFF21#20140003FF10FF00\n"
	for n := range 3 {
		log += fmt.Sprintf("(1.%d00) can0 18EBFF21#%02X%X\n", n+1, n+1, data[7*n:7*n+7])
	}
	log += "(1.500) can0 18EEFF80#0000000000000000\n(1.600) can0 18EA8021#230145\n"
	for name, text := range map[string]string{"drive.log": log, "b.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	r, err := virtual.Simulation{Plant: "b.yaml", For: 2 * time.Second, Every: 1, Record: "drive.rec", Out: "drive.csv"}.Run()
	if err != nil || len(r.Ports) != 1 || !strings.Contains(r.Ports[0], "1 requests, 1 refused; messages of several frames: 1 received") {
		t.Fatalf("%v; %+v", err, r)
	}
	refused := 0
	for _, e := range recordtest.Entries(t, "drive.rec") {
		if f := &e.Frame; e.Kind == record.FrameEntry && f.Other && f.Sent && f.ID&0x1FFFFFFF == 0x18E8FF80 {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("the record has %d refusals", refused)
	}
	table, err := os.ReadFile("drive.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(table)), "\n")
	head, last := strings.Split(rows[0], ","), strings.Split(rows[len(rows)-1], ",")
	i := slices.IndexFunc(head, func(name string) bool { return strings.HasPrefix(name, "C1.pressure") })
	if i < 0 || !strings.HasPrefix(last[i], "7.3") {
		t.Errorf("C1 has %q in %q at the end, want 7.3 bar", last, head)
	}
}
