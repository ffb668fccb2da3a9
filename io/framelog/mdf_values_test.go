package framelog_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/io/framelog"
	"lockstep/io/record"
)

// exportOfTicks returns the MDF4 file of ticks with an input and an output.
func exportOfTicks(t testing.TB, ticks int64) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.mf4")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	x, err := record.NewExporter("mdf4", out, &record.Header{Period: 5e6, Phases: []string{"step"}, Buses: []record.Bus{{}},
		Inputs: []record.Signal{{Name: "p", Unit: "Pa"}}, Outputs: []record.Signal{{Name: "w", Unit: "rad/s"}}})
	if err != nil {
		t.Fatal(err)
	}
	for k := range ticks {
		e := record.Entry{Kind: record.TickEntry, Tick: record.Tick{Index: k + 1, U: []float64{float64(k) * 1e5}, Y: []float64{-float64(k) / 3}, Phases: []int64{7}}}
		if err := x.Write(&e); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(x.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// readTicks reads all channels of the group of ticks.
func readTicks(file []byte) (names []string, times []float64, rows [][]float64, err error) {
	err = framelog.ReadMDFValues("run.mf4", bytes.NewReader(file), record.TickGroup, func(list []framelog.MDFColumn) (all []int, err error) {
		for i, c := range list {
			names, all = append(names, c.Name+"["+c.Unit+"]"), append(all, i)
		}
		return all, nil
	}, func(at float64, values []float64) error {
		times, rows = append(times, at), append(rows, slices.Clone(values))
		return nil
	})
	return names, times, rows, err
}

func TestMDFValuesAreThoseOfTheTicks(t *testing.T) {
	const ticks = 50000 // several blocks
	names, times, rows, err := readTicks(exportOfTicks(t, ticks))
	if err != nil || !slices.Equal(names, []string{"p[Pa]", "w[rad/s]", "flags[]", "phase step[ns]"}) || len(times) != ticks {
		t.Fatalf("%v, %d ticks: %v", names, len(times), err)
	}
	for k, row := range rows {
		if times[k] != float64(int64(k+1)*5e6)/1e9 || row[0] != float64(k)*1e5 || row[1] != -float64(k)/3 || row[3] != 7 {
			t.Fatalf("tick %d at %g s: %v", k+1, times[k], row)
		}
	}
}

// A list of blocks that names one block of records again and again ends with an error.
func TestMDFRecordsAreBoundedByTheSizeOfTheFile(t *testing.T) {
	file := exportOfTicks(t, 50000)
	dl := bytes.Index(file, []byte("##DL"))
	for i := range 8 { // the next list is this list
		file[dl+24+i] = byte(dl >> (8 * i))
	}
	_, _, rows, err := readTicks(file)
	if err == nil || !strings.Contains(err.Error(), "longer than the file") && !strings.Contains(err.Error(), "loop") {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func FuzzMDFValues(f *testing.F) {
	file := exportOfTicks(f, 20)
	f.Add(file)
	for i := 0; i < len(file); i += 97 {
		f.Add(file[:i])
		changed := slices.Clone(file)
		changed[i] ^= 0xFF
		f.Add(changed)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		names, times, rows, err := readTicks(file)
		if err != nil && !strings.Contains(err.Error(), "framelog: ") {
			t.Errorf("the error does not name its origin: %v", err)
		}
		if len(rows) != len(times) || len(times) > 0 && len(rows[0]) != len(names) {
			t.Errorf("%d rows, %d times", len(rows), len(times))
		}
		if len(times) > 64*len(file)+1<<20 {
			t.Errorf("%d records in %d bytes", len(times), len(file))
		}
	})
}
