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

// soakFolderVar is the folder in which the soaks of the labs keep their state; "": the user's
// cache.
const soakFolderVar = "LOCKSTEP_SOAK_FOLDER"

// legKind counts the segments of a kind.
type legKind struct {
	Kind         string
	Legs, Broken int
	Missed       uint64 // ticks
}

// longVerdict is the verdict with the kinds of segments.
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

// longSoak runs or resumes the soak of a lab. It returns the verdict and the folder of the soak.
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

// broken returns the failed criteria, without those that a slow lab breaks: expectations of
// scenarios in which ticks were missed.
func (v *longVerdict) broken(t *testing.T) (list []string) {
	t.Helper()
	for _, d := range v.Soak.Demands {
		if d.Held {
			continue
		}
		t.Logf("%s: expected %s; saw %s", d.What, d.Demanded, d.Seen)
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

// checkKinds checks that segments of each kind have run.
func (v *longVerdict) checkKinds(t *testing.T) {
	t.Helper()
	for _, want := range []string{"plain", "faults", "scenario powershift-clutch-sticks", "scenario powershift-off-the-bus"} {
		if !slices.ContainsFunc(v.Soak.Kinds, func(k legKind) bool { return k.Kind == want && k.Legs > 0 }) {
			t.Errorf("no segment of kind %s", want)
		}
	}
}

func TestLabLongSoakOnVcanMeetsAllCriteria(t *testing.T) {
	v, _ := longSoak(t, lab.VCAN, "90m")
	v.checkKinds(t)
	if failed := v.broken(t); failed != nil {
		t.Errorf("failed criteria: %q", failed)
	}
}

// Lost frames must be within the counts of the drivers and of the loop. The file cards has a line
// for each start: frames sent by one card, frames received by the other, and its overruns. After a
// long stall a card refuses frames, which the loop drops and counts.
func TestLabLongSoakOnTwoCardsMeetsAllCriteria(t *testing.T) {
	v, folder := longSoak(t, lab.PreemptRT, "30m")
	v.checkKinds(t)
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
	_, counts, _ := strings.Cut(v.Unit, "frames heard, ")
	_, err = fmt.Sscanf(counts, "%d malformed, %d lost", &malformed, &lost)
	failed = slices.DeleteFunc(failed, func(what string) bool {
		host := err == nil && malformed == 0 && lost <= gone && v.Missed > 0
		return host && (what == "control unit" || what == "bus" && v.TxRefused == 0 && v.BusDown == 0)
	})
	if len(failed) > 0 {
		t.Errorf("failed criteria: %q; the cards and the loop count %d lost frames", failed, gone)
	}
	if v.BestEffort {
		t.Error("best effort, although the lab grants all rights")
	}
}
