//go:build long

package labs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// soakFolderVar is where the labs' soaks keep what they have seen; "" the user's cache.
const soakFolderVar = "LOCKSTEP_SOAK_FOLDER"

// legKind is what became of the legs of a kind.
type legKind struct {
	Kind         string
	Legs, Broken int
	Missed       uint64
}

// longVerdict is what these tests need besides.
type longVerdict struct {
	verdict
	Soak struct {
		Demands []struct {
			What, Demanded, Seen string
			Held                 bool
		}
		Kinds []legKind
	} `json:"soak"`
}

// longSoak runs or goes on with the soak of a lab, and returns its verdict.
func longSoak(t *testing.T, m lab.Machine, usual string) (v longVerdict, folder string) {
	t.Helper()
	m.Require(t)
	folder = os.Getenv(soakFolderVar)
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		folder = filepath.Join(cache, "lockstep", "soak")
	}
	out, err := exec.CommandContext(t.Context(), "../soak", m.Script, cmp.Or(os.Getenv(soakVar), usual), folder).CombinedOutput()
	t.Logf("%s\n%v", out, err)
	folder = filepath.Join(folder, m.Script)
	data, failed := os.ReadFile(filepath.Join(folder, "report.json"))
	if failed == nil {
		failed = json.Unmarshal(data, &v)
	}
	if failed != nil {
		t.Fatal(failed)
	}
	return v, folder
}

// broken are the demands that did not hold, but those that the lab can break: nobody
// answers in time where nobody is given a CPU.
func (v *longVerdict) broken(t *testing.T) (list []string) {
	t.Helper()
	for _, d := range v.Soak.Demands {
		if d.Held {
			continue
		}
		t.Logf("%s: demanded %s; seen %s", d.What, d.Demanded, d.Seen)
		late := d.What == "expectations"
		for _, k := range v.Soak.Kinds {
			late = late && (k.Missed > 0 || k.Broken == 0 || !strings.HasPrefix(k.Kind, "scenario "))
		}
		if !late {
			list = append(list, d.What)
		}
	}
	return list
}

// everyTurn wants each kind of legs, and each fault to have come and gone.
func (v *longVerdict) everyTurn(t *testing.T) {
	t.Helper()
	for _, want := range []string{"plain", "faults", "scenario powershift-clutch-sticks", "scenario powershift-off-the-bus"} {
		if !slices.ContainsFunc(v.Soak.Kinds, func(k legKind) bool { return k.Kind == want && k.Legs > 0 }) {
			t.Errorf("no leg was %s", want)
		}
	}
}

func TestLabLongSoakOnVcanKeepsWhatARunPromises(t *testing.T) {
	v, _ := longSoak(t, lab.VCAN, "90m")
	v.everyTurn(t)
	if failed := v.broken(t); failed != nil {
		t.Errorf("broken: %q", failed)
	}
}

// What the cards lose is in their drivers' counts, a line for each start: frames sent by
// the one, received by the other, and how often that had no room. A card whose loop was
// away for long takes no frame, and the loop drops it, counted.
func TestLabLongSoakOnTwoCardsKeepsWhatARunPromises(t *testing.T) {
	v, folder := longSoak(t, lab.PreemptRT, "30m")
	v.everyTurn(t)
	failed := v.broken(t)
	text, err := os.ReadFile(filepath.Join(folder, "cards"))
	if err != nil {
		t.Fatal(err)
	}
	gone := v.TxDropped
	for line := range strings.Lines(string(text)) {
		var sent, received, overruns uint64
		if _, err := fmt.Sscan(line, &sent, &received, &overruns); err != nil {
			t.Fatalf("cards: %q: %v", line, err)
		}
		if overruns > 0 {
			gone += sent - received
		}
	}
	var malformed, lost uint64
	_, said, _ := strings.Cut(v.Unit, "frames received, ")
	_, err = fmt.Sscanf(said, "%d malformed, %d lost", &malformed, &lost)
	failed = slices.DeleteFunc(failed, func(what string) bool {
		host := err == nil && malformed == 0 && lost <= gone && v.Missed > 0
		return host && (what == "control unit" || what == "bus" && v.TxRefused == 0 && v.BusDown == 0)
	})
	if len(failed) > 0 {
		t.Errorf("broken: %q; %d frames are known to be lost by the cards and the buffers before them", failed, gone)
	}
	if v.BestEffort {
		t.Error("best effort, on a machine that grants everything")
	}
}
