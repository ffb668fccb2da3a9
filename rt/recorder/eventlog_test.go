package recorder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/yamlfile"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/fault"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// openRecorded returns the bench of benchtest.OpenFile.
func openRecorded(t testing.TB) *bench.Handover {
	t.Helper()
	b, err := bench.Load(benchtest.OpenFile(t))
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Lines are kept when they are posted and read when the loop has taken them. A slot reused meanwhile
// still has its earlier name.
func TestRecordKeepsTheNamesOfSlots(t *testing.T) {
	h := openRecorded(t)
	h.Named = []bench.NamedFault{{Name: "first", Spec: "frame=Speeds drop"}}
	c, commands := NewEventLog(h), scenario.NewCommands(h)
	for i, line := range []string{"fault name=a frame=Status drop", "clear a", "fault name=b frame=Torque drop", "fault name=b bus=drive bus_off"} {
		if _, err := commands.Translate(line); err != nil {
			t.Fatal(err)
		}
		c.KeepLine(uint64(i+1), line)
	}
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(c.FaultText(0, fault.Armed), "first: frame=Speeds drop")
	check(c.takeLine(1), "fault name=a frame=Status drop")
	check(c.FaultText(1, fault.Armed), "a: frame=Status drop")
	check(c.FaultText(1, fault.Active), "a: frame=Status drop")
	check(c.takeLine(2), "clear a")
	check(c.FaultText(1, fault.Free), "a: frame=Status drop")
	check(c.takeLine(3), "fault name=b frame=Torque drop")
	check(c.FaultText(1, fault.Active), "b: frame=Torque drop")
	check(c.takeLine(4), "fault name=b bus=drive bus_off")
	check(c.FaultText(1, fault.Free), "b: frame=Torque drop")
	check(c.FaultText(1, fault.Armed), "b: bus=drive bus_off")
	for batch, line := range c.lines.Range {
		t.Errorf("the line of batch %v is kept: %v", batch, line)
	}
	var none *EventLog // a run without a record
	none.KeepLine(1, "x")
	none.DropLine(1)
}

// An engineer may edit the files while a bench runs.
func TestRunKeepsTheFilesItStartedWith(t *testing.T) {
	dir := benchtest.FaultFolder(t)
	b, err := bench.Load(filepath.Join(dir, "b.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	f, err := h.Save()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	attached, err := bench.LoadHandover(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "guarded.dbc"), []byte("VERSION \"another\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const line = "fault name=a signal=Speeds.w1 'stuck=3 rad/s'"
	for who, c := range map[string]*scenario.Commands{"the supervisor": scenario.NewCommands(h), "its record": NewEventLog(h).commands, "who attaches": scenario.NewCommands(attached), "its record, too": NewEventLog(attached).commands} {
		if list, err := c.Translate(line); err != nil || len(list) != 1 {
			t.Errorf("%s: %s: %+v (%v)", who, line, list, err)
		}
	}
	c := &Recorder{monitor: &monitor{}, View: report.View{Handover: h, Status: new(rt.StatusBlock)}}
	header, err := c.header(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range header.Files {
		if strings.Contains(string(f.Text), "VERSION \"another\"") {
			t.Errorf("the record has %s as it is now", f.Name)
		}
	}
}

// The export has the units of the bench file.
func TestRecordHasTheUnitsOfTheBench(t *testing.T) {
	h := openRecorded(t)
	h.Bench.Buses[0].Units = []bench.Unit{{Of: yamlfile.Scalar{Text: "N.m"}, Is: "kN.m"}}
	c := &Recorder{monitor: &monitor{}, View: report.View{Handover: h, Status: new(rt.StatusBlock)}}
	header, err := c.header(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := header.Buses[0].Units; len(got) != 1 || got["N.m"] != "kN.m" {
		t.Errorf("units %v", got)
	}
}

// A judge reads the ring, too, but needs no lines.
func TestEventLinesArePreservedForARecordOnly(t *testing.T) {
	v := report.View{Handover: openRecorded(t), Status: new(rt.StatusBlock)}
	if (&Recorder{}).EventLog() != nil {
		t.Error("lines are kept for a run without a recorder")
	}
	for path, keeps := range map[string]bool{"": false, filepath.Join(t.TempDir(), "drive.rec"): true} {
		c, err := New(v, Options{Path: path, Scenario: &scenario.Scenario{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.EventLog() != nil; got != keeps {
			t.Errorf("record %q: lines are kept: %t", path, got)
		}
		c.Release()
	}
}
