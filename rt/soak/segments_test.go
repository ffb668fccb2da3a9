package soak

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/rt/host"
	"lockstep/rt/supervisor"
)

// interrupted returns a soak that has ticked, and its output.
func interrupted(t *testing.T) (k *series, said func() string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	_, st := summed(t, 3, nil)
	return &series{Soak: &Soak{Options: supervisor.Options{Out: out}}, state: st, ticked: true, signals: make(chan os.Signal, 1)}, func() string {
		text, _ := os.ReadFile(out.Name())
		return string(text)
	}
}

func TestAnOutageCountsAsOneBrokenSegmentAndIsRetried(t *testing.T) {
	k, said := interrupted(t)
	down := &host.Exit{Code: 3, Err: errors.New("run: bus drive: vcan0: network is down\nrun: and more")}
	for range 3 {
		if err := k.refuse(&segment{number: 4, kind: "faults"}, down); err != nil || k.outage.IsZero() {
			t.Fatalf("%v, %v", err, k.outage)
		}
	}
	totals := &k.state.Totals
	if totals.Segments != 4 || totals.Broken != 1 || totals.kind("faults").Broken != 1 || strings.Count(said(), "\n") != 1 ||
		said() != "leg 4, faults: BROKEN; it could not begin, and the next one is tried for 5m0s: soak: leg 4: bus drive: vcan0: network is down\n" {
		t.Errorf("%d legs, %d broken, said %s", totals.Segments, totals.Broken, said())
	}
	if d := totals.verdict(15*time.Minute, "none"); d.Pass || len(broken(d)) != 1 || broken(d)[0] != "start" {
		t.Errorf("the verdict: %v", d.Failed())
	}
	k.outage = time.Now().Add(-maxOutage - time.Second)
	err := k.refuse(&segment{number: 5, kind: plainSegment}, down)
	refused := &host.Exit{}
	if !errors.As(err, &refused) || refused.Code != 3 || err.Error() != "soak: no leg has begun for 5m0s: soak: leg 5: bus drive: vcan0: network is down\nsoak: leg 5: and more" {
		t.Errorf("after too long: %v", err)
	}
	k.signals <- syscall.SIGTERM
	if k.waitRetry(); k.stopped != "terminated" {
		t.Errorf("stopped by %q, want terminated", k.stopped)
	}
}

func TestOtherErrorsEndASoakAtOnce(t *testing.T) {
	for _, c := range []struct {
		ticked bool
		code   int
	}{{false, 3}, {true, 2}, {true, 1}} {
		k, said := interrupted(t)
		k.ticked = c.ticked
		err := k.refuse(&segment{number: 4, kind: plainSegment}, &host.Exit{Code: c.code, Err: errors.New("run: why")})
		if e := (&host.Exit{}); !errors.As(err, &e) || e.Code != c.code || err.Error() != "soak: leg 4: why" || k.state.Totals.Segments != 3 || said() != "" {
			t.Errorf("%+v: %v, %s", c, err, said())
		}
	}
	if err := segmentError(&segment{number: 7}, fmt.Errorf("other")); err.Error() != "soak: leg 7: other" {
		t.Errorf("%v", err)
	}
}

// The real-time clock may have been set meanwhile, the clock since boot cannot.
func TestTimeBetweenStartsUsesTheBootClock(t *testing.T) {
	const s = int64(time.Second)
	now := instant{Wall: 1000 * s, Boot: "a", Uptime: 100 * s}
	for _, c := range []struct {
		what string
		then instant
		want int64
	}{
		{"this boot", instant{Wall: 960 * s, Boot: "a", Uptime: 60 * s}, 40 * s},
		{"this boot, the clock set back", instant{Wall: 2000 * s, Boot: "a", Uptime: 60 * s}, 40 * s},
		{"this boot, the clock set forward", instant{Wall: 1, Boot: "a", Uptime: 60 * s}, 40 * s},
		{"an earlier boot", instant{Wall: 300 * s, Boot: "b", Uptime: 5000 * s}, 700 * s},
		{"an earlier boot, the clock set back", instant{Wall: 2000 * s, Boot: "b", Uptime: 5 * s}, 100 * s},
		{"a file without a boot id", instant{Wall: 990 * s}, 10 * s},
		{"the same, the clock set back", instant{Wall: 2000 * s}, 0},
	} {
		if got := now.since(c.then); got != c.want {
			t.Errorf("%s: %g s, want %g", c.what, float64(got)/1e9, float64(c.want)/1e9)
		}
	}
	_, st := summed(t, 1, nil)
	if back := reread(t, st); back.Boot != host.BootID() || !(back.Uptime > 0) || thisInstant().since(back.instant) > int64(time.Minute) {
		t.Errorf("the state file says %+v", back.instant)
	}
}
