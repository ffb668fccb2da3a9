package certify

import (
	"os"
	"path/filepath"
	"testing"

	"lockstep/deploy/doctor"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

func TestOnlyTheTunedHostHasNoObjections(t *testing.T) {
	const hosts = "../../sched/hostinfo/testdata/hosts"
	entries, err := os.ReadDir(hosts)
	if err != nil || len(entries) < 7 {
		t.Fatalf("%d hosts, %v", len(entries), err)
	}
	for _, e := range entries {
		root := filepath.Join(hosts, e.Name())
		d, err := doctor.Examine(root, doctor.Requirements{CPU: -1, Priority: 80, Timer: sched.Timerfd})
		if err != nil {
			t.Fatal(err)
		}
		list := objections(hostinfo.Read(root, -1), d)
		if (len(list) == 0) != (e.Name() == "tuned") {
			t.Errorf("%s: %q", e.Name(), list)
		}
		if !d.Fit && len(list) == 0 {
			t.Errorf("%s is not fit but has no objections", e.Name())
		}
	}
}
