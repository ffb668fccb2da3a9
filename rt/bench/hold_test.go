package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/bench/benchtest"
	"lockstep/sched"
)

// openHeld is the bench of benchtest.OpenFile.
func openHeld(t testing.TB) *Handover {
	t.Helper()
	b, err := Load(benchtest.OpenFile(t))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// unheld is the name of something that nobody else holds.
func unheld(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%s%d-%s", heldBus, os.Getpid(), t.Name()[len("Test"):][:6])
}

func TestOfManyThatTakeOneThingOneHasIt(t *testing.T) {
	what := unheld(t)
	const many = 20
	var all [many]holds
	var by [many]*holder
	var wait sync.WaitGroup
	for i := range many {
		all[i].owner = fmt.Sprintf("bench %d", i)
		wait.Go(func() {
			var err error
			if by[i], err = all[i].take(what); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	winner := slices.Index(by[:], nil)
	for i := range many {
		if i != winner && (by[i] == nil || by[i].bench != fileName(all[winner].owner) || by[i].supervisor != os.Getpid() || by[i].target != 0) {
			t.Errorf("%d lost to %+v, where %d has it", i, by[i], winner)
		}
	}
	for i := range many {
		all[i].close()
	}
	var next holds
	if by, err := next.take(what); by != nil || err != nil {
		t.Errorf("let go, it is held by %v, %v", by, err)
	}
	next.close()
}

func TestWhatATargetHasInheritedIsHeldUntilItEnds(t *testing.T) {
	what := unheld(t)
	h := &holds{owner: "a bench"}
	if by, err := h.take(what); by != nil || err != nil {
		t.Fatal(by, err)
	}
	files, err := h.files()
	if err != nil {
		t.Fatal(err)
	}
	p, err := spawn("/bin/sleep", nil, files, "60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	h.inherited(p.pid)
	for _, f := range files {
		f.Close()
	}
	taken := func() *holder {
		var other holds
		defer other.close()
		by, err := other.take(what)
		if err != nil {
			t.Fatal(err)
		}
		return by
	}
	if by := taken(); by == nil || by.supervisor != os.Getpid() || by.target != p.pid {
		t.Errorf("held by %+v, want process %d and its target %d", by, os.Getpid(), p.pid)
	}
	h.close() // as the end of the supervisor does
	if by := taken(); by == nil || by.supervisor != 0 || by.target != p.pid {
		t.Errorf("held by %+v, want the target alone, %d", by, p.pid)
	}
	heir := &holds{owner: "a bench"}
	if err := heir.adopt(p.fd, 3, []string{what}); err != nil {
		t.Fatal(err)
	}
	p.kill()
	if by := taken(); by == nil || by.supervisor != os.Getpid() {
		t.Errorf("held by %+v, want who has taken over", by)
	}
	heir.close()
	if by := taken(); by != nil {
		t.Errorf("held by %+v, want nobody", by)
	}
}

// Between two legs of a soak nobody takes what they have, and the next target holds it, too.
func TestALegHoldsWhatTheOneBeforeItHad(t *testing.T) {
	b := openHeld(t).Bench
	b.CPU, b.Buses[0].Interface.Text = 1000+os.Getpid()%1000, strings.TrimPrefix(unheld(t), heldBus)
	var h *holds
	for i := range 3 {
		r := &run{view: view{h: &Handover{Bench: b}}, bench: b, holds: h, restore: func() {}}
		if err := r.hold(); err != nil || r.h.Thread.CPU != b.CPU || len(r.holds.what) != 2 || len(r.holds.fds) != 2 || len(r.holds.tags) != 2 {
			t.Fatalf("leg %d: %v, CPU %d, %+v", i, err, r.h.Thread.CPU, r.holds)
		}
		k := &legs{store: &store{}}
		r.holds.inherited(1_000_000 + i)
		h = r.holds
		k.after(r)
		if k.holds != h || r.holds != nil {
			t.Fatalf("leg %d: kept %v", i, k.holds)
		}
		var other holds
		if by, err := other.take(h.what[0]); err != nil || by == nil || by.supervisor != os.Getpid() {
			t.Errorf("leg %d: held by %v, %v", i, by, err)
		}
		other.close()
	}
	h.close()
}

func TestTheLoadLeavesOtherLoopsTheirCPUs(t *testing.T) {
	all := besides(-1, nil)
	mine, other := &holds{owner: "mine"}, &holds{owner: "other"}
	defer other.close()
	const cpu = "999"
	if by, err := other.take(heldCPU + cpu); by != nil || err != nil {
		t.Fatal(by, err)
	}
	if loops := mine.otherLoops(); !slices.Contains(loops, 999) {
		t.Errorf("loops of others on %v", loops)
	}
	mine.what = []string{heldCPU + cpu}
	if loops := mine.otherLoops(); slices.Contains(loops, 999) {
		t.Errorf("the own one is another's: %v", loops)
	}
	if got := besides(-1, all[:1]); len(all) > 1 && !slices.Equal(got, all[1:]) {
		t.Errorf("%v of %v without %d", got, all, all[0])
	}
	if got := besides(7, all); !slices.Equal(got, []int{7}) {
		t.Errorf("%v where every other CPU has a loop, want the own one", got)
	}
}

func TestWhatIsLeftBesidesTheLoopsIsNeverNothing(t *testing.T) {
	set := func(cpus ...int) (s unix.CPUSet) {
		for _, cpu := range cpus {
			s.Set(cpu)
		}
		return s
	}
	for _, c := range []struct {
		all   unix.CPUSet
		cpu   int
		loops []int
		want  unix.CPUSet
	}{
		{set(0, 1, 2, 3), 3, []int{2}, set(0, 1)},
		{set(0, 1, 2, 3), 3, nil, set(0, 1, 2)},
		{set(0, 1), 1, []int{0}, set(0)}, // a loop is on each
		{set(0, 1), 0, []int{0, 7}, set(1)},
		{set(1), 1, []int{0}, set()},
	} {
		if got := left(c.all, c.cpu, c.loops); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestATargetThatDoesNotEndIsSaid(t *testing.T) {
	p, err := spawn("/bin/sleep", nil, nil, "60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	h := &Handover{Bench: openHeld(t).Bench}
	h.Loop.Period, h.Loop.Safe.Ticks = time.Second, -2-int64(starting/time.Second) // no time is left to wait
	s := &socket{name: "lone", pid: p.pid, lone: &view{h, new(rt.Page)}}
	target, err := adopt(p.pid, p.since)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.stopLone(false, target, nil)()
	if want := fmt.Sprintf("lone (process %d) does not end; nobody watches over it: lockstep stop %[1]d -now kills it", p.pid); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

func TestAnInterfaceIsRefusedEvenAtBestEffort(t *testing.T) {
	iface := strings.TrimPrefix(unheld(t), heldBus)
	begin := func(o Options) (*run, error) {
		b := openHeld(t).Bench
		b.CPU, b.Buses[0].Interface.Text = 1000+os.Getpid()%1000, iface // no CPU that another test takes
		r := &run{view: view{h: &Handover{Bench: b}}, bench: b, options: o}
		return r, r.hold()
	}
	first, err := begin(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.holds.close()
	second, err := begin(Options{BestEffort: true})
	defer second.holds.close()
	if want := fmt.Sprintf("run: interface %s is held by open_bench, process %d: end that one (lockstep stop %[2]d), or name another interface (-bus drive=NAME)", iface, os.Getpid()); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	var by *ReservedError
	if !errors.As(err, &by) || by.What != heldBus+iface || by.Owner != "open_bench" || by.Supervisor != os.Getpid() || by.Target != 0 {
		t.Errorf("%+v", by)
	}
}

func TestAHolderIsNamedWithTheCommandsThatEndIt(t *testing.T) {
	for want, h := range map[string]holder{
		"b, process 7: end that one (lockstep stop 7)": {what: "cpu/3", bench: "b", supervisor: 7, target: 8},
		"b, whose target, process 8, goes on without a supervisor: take it over (lockstep attach 8) or end it (lockstep stop 8)": {what: "cpu/3", bench: "b", target: 8},
		"another run, which does not say its name (ss -xp | grep " + sched.ClaimRoot + "cpu/3)":                                  {what: "cpu/3"},
	} {
		if got := h.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// As long as somebody changes the host a run waits; it says for whom, and does not wait
// for ever.
func TestARunWaitsForWhoChangesTheHost(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	what := fmt.Sprintf("host/%d", os.Getpid())                   // other tests run on this host
	if err := awaitSettings(out, what, time.Minute); err != nil { // nobody does, or for a moment
		t.Fatal(err)
	}
	fd, err := sched.Claim(sched.Claimed{What: what, Role: supervisorLabel, Process: 812, Owner: "doctor"}.String())
	if err != nil {
		t.Fatal(err)
	}
	close := sync.OnceFunc(func() { unix.Close(fd) })
	defer close()
	var by *ReservedError
	if err := awaitSettings(out, what, time.Millisecond); !errors.As(err, &by) || by.What != what || by.Owner != "doctor" || by.Supervisor != 812 {
		t.Errorf("%v, %+v", err, by)
	}
	if slices.ContainsFunc(List(), func(v Listed) bool { return v.Supervisor == 812 }) {
		t.Error("ps takes it for a run")
	}
	time.AfterFunc(3*look/2, close)
	if err := awaitSettings(out, what, time.Minute); err != nil {
		t.Errorf("when it has ended: %v", err)
	}
	if text, _ := os.ReadFile(out.Name()); strings.Count(string(text), "lockstep doctor, process 812, changes the settings of this host: waiting for it, 1m0s at most\n") != 1 {
		t.Errorf("said: %s", text)
	}
}

func TestWhereEveryCPUIsHeldARealBusIsRefusedAndAPairShares(t *testing.T) {
	h, iface := openHeld(t), strings.TrimPrefix(unheld(t), heldBus)
	other := &holds{owner: "other"}
	defer other.close()
	cpus := sched.CPUs()
	for _, cpu := range cpus { // some may be another test's: they are held, too
		if _, err := other.take(fmt.Sprintf("%s%d", heldCPU, cpu)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		iface  string
		best   bool
		shares bool
	}{{pair, false, true}, {pair, true, true}, {iface, false, false}, {iface, true, true}} {
		b := *h.Bench
		b.CPU = -1
		b.Buses = slices.Clone(b.Buses)
		b.Buses[0].Interface.Text = c.iface
		r := &run{view: view{h: &Handover{Bench: &b}}, bench: &b, options: Options{BestEffort: c.best}, holds: &holds{owner: "mine"}}
		err := r.hold()
		r.holds.close()
		var by *ReservedError
		switch {
		case c.shares && (err != nil || r.shared == nil || !strings.HasPrefix(r.shared.What, fmt.Sprintf("there are more loops than CPUs, %d: ", len(cpus)))):
			t.Errorf("%+v: %v, %+v", c, err, r.shared)
		case !c.shares && (!errors.As(err, &by) || by.What != heldCPU+strconv.Itoa(cpus[0]) || r.shared != nil):
			t.Errorf("%+v: %v, %+v", c, err, r.shared)
		}
	}
}

func TestControlSocketsOfRootAreBesideThoseOfServices(t *testing.T) {
	dir, me := t.TempDir(), os.Getuid()
	for uid, want := range map[int]string{me: dir, me + 1: fmt.Sprintf("%s-%d", dir, me+1)} {
		if got := besideServices(dir, uid); got != want {
			t.Errorf("user %d: %s, want %s", uid, got, want)
		}
	}
	if none := filepath.Join(dir, "none"); besideServices(none, me+1) != none {
		t.Error("a folder that is not there yet is left to another user")
	}
}

func TestTheFreeCPUIsOneThatNobodyHasOrTheBenchsOwn(t *testing.T) {
	if got := FreeCPU(7); got != 7 {
		t.Errorf("CPU %d for a bench with CPU 7", got)
	}
	h := &holds{owner: "free"}
	defer h.close()
	all := func(cpus []int) bool { // are held
		list := holders()
		return !slices.ContainsFunc(cpus, func(cpu int) bool {
			return !slices.ContainsFunc(list, func(h holder) bool { return h.what == heldCPU+strconv.Itoa(cpu) })
		})
	}
	for range 100 { // benches of other tests come and go
		cpu := FreeCPU(-1)
		if by, err := h.take(heldCPU + strconv.Itoa(cpu)); err != nil {
			t.Fatal(err)
		} else if by != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		cpus := sched.CPUs()
		if next := FreeCPU(-1); next == cpu && !all(cpus) {
			t.Errorf("CPU %d of %v is free, while it is held and another one is not", cpu, cpus)
		}
		return
	}
	t.Log("each CPU was held by others all the time")
}
