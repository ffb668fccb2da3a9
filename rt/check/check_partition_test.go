package check

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// partedRail writes the file of the rail car with a partition.
func partedRail(t *testing.T, keys string) string {
	t.Helper()
	data, err := plants.Read("rail17")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rail.yaml")
	if err := os.WriteFile(file, append([]byte("partition: {"+keys+"}\n"), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCheckDescribesAPartition(t *testing.T) {
	var b bytes.Buffer
	c := Check{Step: 50 * time.Millisecond, Out: &b}
	if err := c.File(partedRail(t, "N_sub: 2, N_iter: 1")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"active       4  bogie1.rear.wheel.w", "two parts: 2 micro steps of 25ms", "1 additional iteration", "no event is located", "worst tick"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("check lacks %q:\n%s", want, b.String())
		}
	}
}

// The wheels follow their axles at mu0·N/(T_sgn·m_red) = 457 1/s under T_sgn.
func TestCheckWarnsOfLongMicroSteps(t *testing.T) {
	for keys, want := range map[string]string{
		"N_sub: 4": ": partition: micro steps of 12ms are too long for laws with a time constant of 2.1ms in the active part: its results are wrong; take micro steps of at most 6ms",
		"N_sub: 9": "",
	} {
		var warned []string
		file := partedRail(t, keys)
		c := Check{Step: 50 * time.Millisecond, Out: io.Discard, Warn: func(s string) { warned = append(warned, s) }}
		if err := c.File(file); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(strings.Join(warned, "; "), file); got != want {
			t.Errorf("%s: warned of %q, want %q", keys, got, want)
		}
	}
}

// Drag is quadratic in a speed that grows to 100 rad/s; the file gives its range only in the
// second case.
func TestCheckWarnsOfLawsThatDoNotConverge(t *testing.T) {
	for key, wants := range map[string]bool{"": true, ", range: 3200 rad/s": false} {
		file := filepath.Join(t.TempDir(), "fan.yaml")
		text := `plant: fan
elements:
  fan: {type: inertia, J: 1}
  w: {type: speed_sensor, flange: fan` + key + `}
  air: {type: torque, flange: fan, tau: {product: [-5, w, w]}}
  motor: {type: torque, flange: fan, tau: {table: [[0, 5e7], [6 ms, 0]]}}
outputs: {w: {speed: fan}}
`
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var warned []string
		c := Check{Step: 3 * time.Millisecond, Out: io.Discard, Warn: func(s string) { warned = append(warned, s) }}
		if err := c.File(file); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(strings.Join(warned, "\n"), "under own input waveforms laws did not converge in "); said != wants {
			t.Errorf("with %q check warns of %q", key, warned)
		}
	}
}

func TestPartitionBeyondTheBudgetOfATickIsRefused(t *testing.T) {
	p := &checkedPlant{sys: &model.System{Partition: &model.Partition{Sub: 2, Iter: 3, Place: "a.yaml:1:1"}}, tables: &kernel.Tables{PeriodNs: 1e6}}
	if err := checkBudget(p, 500*time.Microsecond); err != nil {
		t.Errorf("half of the period: %v", err)
	}
	want := "a.yaml:1:1: partition: N_sub 2 with N_iter 3 takes 501µs in the worst tick, more than the budget of 500µs; use a smaller N_sub or N_iter, or a longer period"
	if err := checkBudget(p, 501*time.Microsecond); err == nil || err.Error() != want {
		t.Errorf("refused with %v, want %q", err, want)
	}
	if p.budget = 3e5; checkBudget(p, 301*time.Microsecond) == nil || checkBudget(p, 300*time.Microsecond) != nil {
		t.Error("the budget of a bench is ignored")
	}
	if p.sys.Partition = nil; checkBudget(p, time.Second) != nil {
		t.Error("a plant without a partition is refused")
	}
}
