package virtual

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/inputfile"
	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/units"
)

func twoInputs() []units.Port {
	return []units.Port{
		{Name: "clutch1.pressure", Unit: "Pa", Declared: "bar", Min: 0, Max: 40e5},
		{Name: "tau", Unit: "N.m", Min: math.Inf(-1), Max: math.Inf(1)},
	}
}

func TestStimulusIsHeldBetweenRowsAndConvertedToSI(t *testing.T) {
	text := "# pressures of a fill\ntime[ms], tau[kN.m], clutch1.pressure[bar]\n5, 1, 2\n12, -1, 3.5\n"
	s, err := parseStimulus("in.csv", strings.NewReader(text), twoInputs())
	if err != nil {
		t.Fatal(err)
	}
	u := []float64{7, 8}
	row := -1
	for _, c := range []struct {
		ns            int64
		pressure, tau float64
	}{
		{0, 7, 8}, // before the first row: untouched
		{5e6, 2e5, 1000},
		{10e6, 2e5, 1000},
		{12e6, 3.5e5, -1000},
		{1e12, 3.5e5, -1000},
	} {
		if row = s.apply(u, c.ns, row); u[0] != c.pressure || u[1] != c.tau {
			t.Errorf("at %d ns: %v Pa, %v N.m; want %v, %v", c.ns, u[0], u[1], c.pressure, c.tau)
		}
	}
}

func TestBadStimulusIsNamedWithItsPosition(t *testing.T) {
	const head = "time[s],clutch1.pressure[bar]\n"
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "in.csv:1:1: bench: the file is empty"},
		{"only a header", head, "in.csv:2:1: bench: the file has a header and no row"},
		{"no time", "clutch1.pressure[bar]\n1\n", `in.csv:1:1: bench: expected time[s] as the first column, got "clutch1.pressure[bar]"`},
		{"time in bar", "time[bar]\n1\n", "in.csv:1:1: bench: model: unit \"bar\""},
		{"no unit", "time[s],clutch1.pressure\n0,1\n", `in.csv:1:9: bench: column "clutch1.pressure" has no unit: write clutch1.pressure[bar]`},
		{"unit that does not fit", "time[s],clutch1.pressure[N.m]\n0,1\n", `in.csv:1:9: bench: input "clutch1.pressure": unit "N.m" (kg.m2/s2) does not fit "bar"`},
		{"unknown input", "time[s],clutch1.presure[bar]\n0,1\n", `in.csv:1:9: bench: the plant has no input "clutch1.presure" (did you mean clutch1.pressure?); it has clutch1.pressure, tau`},
		{"twice", "time[s],tau[N.m],tau[N.m]\n0,1,1\n", `in.csv:1:18: bench: input "tau" appears twice`},
		{"no number", head + "0,1\n0.1,x\n", `in.csv:3:5: bench: column clutch1.pressure: "x" is not a number`},
		{"NaN", head + "0,NaN\n", "in.csv:2:3: bench: column clutch1.pressure: NaN bar is outside the range"},
		{"out of range", head + "0,41\n", "in.csv:2:3: bench: column clutch1.pressure: 41 bar is outside the range of the input, 0 to 40 bar"},
		{"infinite", "time[s],tau[N.m]\n0,Inf\n", "in.csv:2:3: bench: column tau: Inf N.m is outside the range"},
		{"time goes back", head + "1,1\n0.5,1\n", "in.csv:3:1: bench: column time: 0.5 is not after the row before it"},
		{"time NaN", head + "NaN,1\n", "in.csv:2:1: bench: column time: NaN is not between"},
		{"short row", head + "1\n", "in.csv:2:1: bench: row of 1 fields, the header has 2"},
		{"semicolons", "# made by a spreadsheet\r\n\r\ntime[s];clutch1.pressure[bar]\r\n0,0;1,5\r\n",
			"in.csv:3:8: bench: the columns are separated by ';': separate them by ',', and write decimals with a point"},
		{"quoted and semicolons", "\"time[s]\";\"tau[N.m]\"\n0;1\n", "in.csv:1:10: bench: the columns are separated by ';'"},
		{"tabs", "time[s]\tclutch1.pressure[bar]\n0\t1\n", "in.csv:1:8: bench: the columns are separated by tabs"},
		{"decimal comma", head + "0,1,5\n", "in.csv:2:1: bench: row of 3 fields, the header has 2; decimals follow a point"},
		{"quoted decimal comma", head + "0,\"1,5\"\n", `in.csv:2:3: bench: column clutch1.pressure: "1,5" is not a number; decimals follow a point: 1.5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseStimulus("in.csv", strings.NewReader(c.text), twoInputs())
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s...", err, c.want)
			}
		})
	}
}

func TestSourceIsLinearBetweenItsRowsAndJumpsAtEqualTimes(t *testing.T) {
	s := &model.Source{T: []float64{0, 1, 1, 3}, V: []float64{10, 20, 40, 0}}
	for at, want := range map[float64]float64{-1: 10, 0: 10, 0.5: 15, 1: 40, 2: 20, 3: 0, 9: 0} {
		if got := kernel.SourceAt(s, at); got != want {
			t.Errorf("at %g s: %g, want %g", at, got, want)
		}
	}
}

func TestByteOrderMarkOfInputsIsIgnored(t *testing.T) {
	file := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(file, []byte("\xef\xbb\xbftime[s],tau[N.m]\n0,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readStimulus(file, twoInputs()); err != nil {
		t.Error(err)
	}
}

func TestInputsAboveALimitAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(file, []byte("time[s],tau[N.m]\n0,1\n"+strings.Repeat("1", 1<<20+1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readStimulus(file, twoInputs()); !errors.Is(err, inputfile.ErrLongLine) || !strings.Contains(err.Error(), file+": line 3") {
		t.Errorf("a long row: %v", err)
	}
	if err := os.Truncate(file, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := readStimulus(file, twoInputs()); !errors.Is(err, inputfile.ErrTooLarge) || !strings.Contains(err.Error(), file) {
		t.Errorf("1 TiB: %v", err)
	}
}

// TestInputsWithoutARangeTakeSizesOfTheirUnit has a value that would overflow in the unit of an output.
func TestInputsWithoutARangeTakeSizesOfTheirUnit(t *testing.T) {
	inputs := []units.Port{{Name: "p", Unit: "N.m", Min: math.Inf(-1), Max: math.Inf(1)}}
	for text, good := range map[string]bool{"1e308": false, "-1e16": false, "1e15": true} {
		_, err := parseStimulus("in.csv", strings.NewReader("time[s],p[N.m]\n0,"+text+"\n"), inputs)
		if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "in.csv:2:3: bench: column p: "+text+
			" N.m is outside the range of the input, -1e+15 to 1e+15 N.m") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
