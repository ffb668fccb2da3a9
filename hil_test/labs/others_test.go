package labs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/io/record"
)

// noted is a frame as a log of candump has it.
type noted struct {
	us    int64 // since 1970
	frame string
}

// candumped are the frames of a log of candump -L from an instant on, ns since 1970, and
// what it says of their directions.
func candumped(t *testing.T, text string, from int64) (list []noted, directions string) {
	t.Helper()
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 3 {
			t.Fatalf("line %q", line)
		}
		us, err := strconv.ParseInt(strings.Replace(strings.Trim(f[0], "()"), ".", "", 1), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if us < from/1000 {
			continue
		}
		if i := strings.Index(f[2], "##") + 2; i > 1 && f[2][i] >= '4' { // kernels from 6.1 on say here that it is an FD frame
			f[2] = f[2][:i] + string(f[2][i]-4) + f[2][i+1:]
		}
		list = append(list, noted{us, f[2]})
		if directions += "-"; len(f) > 3 {
			directions = directions[:len(directions)-1] + f[3]
		}
	}
	return list, directions
}

// differences are the frames that one list has more often than the other.
func differences(a, b []noted) map[string]int {
	count := map[string]int{}
	for _, f := range a {
		count[f.frame]++
	}
	for _, f := range b {
		count[f.frame]--
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n == 0 })
	return count
}

// busyRun is a record with frames of all kinds beside the bench's, what candump has seen
// meanwhile, and how many frames came from two senders, half of them with the bench's
// identifiers.
func busyRun(t *testing.T, rate string) (rec, witness string, sent, heard, lost uint64) {
	t.Helper()
	dir := t.TempDir()
	rec = filepath.Join(dir, "run.rec")
	lab.Shell(t, "cangw -A -s vcan1 -d vcan0 -e")
	defer lab.Shell(t, "cangw -F")
	dump := lab.StartCandump(t, "vcan0")
	b := lab.StartDemoOn(t, "vcan0", lab.UntilStopped, nil, "-besteffort", "-record", rec)
	unit := lab.Start(t, lab.Command(t), "ecu", "powershift", "-bus", "vcan0")
	b.AwaitTicking()
	// 200 to 202 are what the bench sends: of another program on this host, and of another
	// node, as which appears what the kernel's gateway forwards.
	ids := []string{"7ff", "123", "1abcdef", "200", "201", "202"}
	here, there := lab.SendRandom(t, "vcan0", rate, "3", ids...), lab.SendRandom(t, "vcan1", rate, "3", ids...)
	lab.Shell(t, "cansend vcan0 123##3112233445566778899AABBCC && cansend vcan0 1ABCDEF0#R && cansend vcan0 7FF#R3")
	sent = lab.AwaitSender(t, here) + lab.AwaitSender(t, there)
	unit.Signal(syscall.SIGTERM) // what it sent after the end would be in no record
	unit.Wait()
	b.Stop()
	lab.AwaitQuiet(dump)
	dump.Signal(syscall.SIGINT)
	dump.Wait()
	heard, lost = others(t, b)
	replaysAlike(t, rec)
	return rec, dump.Out.String(), sent, heard, lost
}

// others is what a report says of the frames that were heard beside the loop, and lost.
func others(t *testing.T, b *lab.Bench) (heard, lost uint64) {
	t.Helper()
	var full struct {
		Others []struct {
			Bus         string
			Heard, Lost uint64
		} `json:"record_others"`
	}
	if err := json.Unmarshal([]byte(lab.ReadTrimmed(t, b.File)), &full); err != nil || len(full.Others) != 1 {
		t.Fatalf("%v: %+v", err, full)
	}
	v := full.Others[0]
	return v.Heard, v.Lost
}

// replaysAlike replays a record, which has to be identical.
func replaysAlike(t *testing.T, rec string) {
	t.Helper()
	p := lab.Start(t, lab.Command(t), "replay", rec)
	if code := p.Wait(); code != 0 {
		t.Errorf("replay: exit %d\n%s%s", code, &p.Out, &p.Err)
	}
	t.Logf("replay: %s", strings.TrimSpace(p.Out.String()))
}

// recorded is what a record holds but for its ticks.
func recorded(t *testing.T, path string) (list []record.Entry) {
	t.Helper()
	r, err := record.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		e, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return list
		case err != nil:
			t.Fatal(err)
		case e.Kind != record.TickEntry:
			list = append(list, *e)
		}
	}
}

// candump is a socket of its own: what it has seen was on the bus.
func TestLabRecordHoldsEveryFrameOnABus(t *testing.T) {
	if !lab.InVCAN(t, "candump", "cangw", "cansend") {
		return
	}
	rec, witness, sent, heard, lost := busyRun(t, "400")
	in, err := record.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	seen, _ := candumped(t, witness, in.Header.Start)
	left := map[noted]int{}
	for _, f := range seen {
		left[f]++
	}
	sentIDs := map[uint32]bool{}
	for _, m := range in.Header.Buses[0].Messages {
		sentIDs[m.ID] = m.Sent
	}
	beside, theirs, received, wrong := uint64(0), 0, 0, 0
	for _, e := range recorded(t, rec) {
		if e.Kind == record.EventEntry && (e.Event.Kind == record.Lost || e.Event.Kind == record.MonitorLost) {
			t.Errorf("%+v", e.Event)
		}
		if e.Kind != record.FrameEntry || e.Frame.Sent {
			continue
		}
		// The kernel stamps a frame once, whoever reads it.
		key := noted{e.Frame.Time / 1000, text(&e.Frame)}
		if left[key]--; left[key] < 0 {
			if wrong++; wrong < 4 {
				t.Errorf("%+v is in the record, candump has it not, or not so often or at another time", key)
			}
		}
		received++
		if e.Frame.Other {
			if beside++; sentIDs[e.Frame.ID] {
				theirs++
			}
		}
	}
	if beside != heard || lost != 0 || theirs == 0 || uint64(theirs)+3 < sent/2 || received == int(beside) || wrong > 0 {
		t.Errorf("%d frames beside those of the bench, %d with an identifier that it sends, of %d that others have sent; %d of them candump has not; the report says %d, and %d lost",
			beside, theirs, received, wrong, heard, lost)
	}
	log := filepath.Join(t.TempDir(), "run.log")
	lab.Shell(t, lab.Command(t)+" export "+rec+" -o "+log)
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	exported, directions := candumped(t, string(data), 0)
	if diff := differences(seen, exported); len(diff) != 0 || len(seen) < 2000 {
		t.Errorf("candump has seen %d frames, the export has %d; more often in the first than in the second, by frame: %.2000s", len(seen), len(exported), fmt.Sprint(diff))
	}
	ours := strings.Count(directions, "T")
	t.Logf("candump: %d frames; export: %d, %d of them sent by the bench; others %d, %d of them with an identifier of the bench",
		len(seen), len(exported), ours, beside, theirs)
	stampsOf(t, seen, exported, len(exported)-ours)
}

// stampsOf compares the times of an export with candump's: no frame is earlier, and as
// good as all that others have sent, so many, have the same.
func stampsOf(t *testing.T, seen, exported []noted, others int) {
	t.Helper()
	at := map[string][]int64{}
	for _, f := range seen {
		at[f.frame] = append(at[f.frame], f.us)
	}
	var off []int64
	equal := 0
	for _, f := range exported {
		list := at[f.frame]
		if len(list) == 0 {
			continue // told already
		}
		i := slices.Index(list, f.us)
		if i < 0 {
			i = 0
			off = append(off, f.us-list[0])
		} else {
			equal++
		}
		at[f.frame] = slices.Delete(list, i, i+1)
	}
	slices.Sort(off)
	if len(off) > 0 {
		t.Logf("%d times are equal to the microsecond, %d differ, by %d to %d us, half of them by less than %d", equal, len(off), off[0], off[len(off)-1], off[len(off)/2])
	}
	if 10*equal < 9*others {
		t.Errorf("%d of %d times are those of candump, %d frames are of others", equal, len(exported), others)
	}
}

// text is a frame as candump writes it.
func text(f *record.Frame) string {
	var h record.Header
	h.Period, h.Buses = 1, []record.Bus{{Interface: "vcan0"}}
	var b file
	x, err := record.NewExporter("candump", &b, &h)
	if err == nil {
		err = x.Write(&record.Entry{Kind: record.FrameEntry, Frame: *f})
	}
	if err == nil {
		err = x.Close()
	}
	if err != nil {
		return err.Error()
	}
	return strings.Fields(string(b))[2]
}

// file is one in memory, from its beginning to its end.
type file []byte

func (b *file) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (b *file) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

// backlog is how many packets the kernel has dropped between an interface and all
// sockets: the second column of softnet_stat, of each CPU.
func backlog(t *testing.T) (n uint64) {
	t.Helper()
	for line := range strings.Lines(lab.ReadTrimmed(t, "/proc/net/softnet_stat")) {
		dropped, err := strconv.ParseUint(strings.Fields(line)[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		n += dropped
	}
	return n
}

// carried is how many frames vcan0 has carried.
func carried(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(lab.ReadTrimmed(t, "/sys/class/net/vcan0/statistics/tx_packets")))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What comes while the supervisor stands still, beyond what the kernel keeps for it, is
// missing, and every frame of it is counted; the loop does not notice.
func TestLabFloodBesideTheLoopIsCountedToTheFrame(t *testing.T) {
	if !lab.InVCAN(t, "candump") {
		return
	}
	rec := filepath.Join(t.TempDir(), "run.rec")
	b := lab.StartDemoOn(t, "vcan0", lab.UntilStopped, nil, "-besteffort", "-record", rec)
	b.AwaitTicking()
	before := backlog(t)
	flood := lab.SendRandom(t, "vcan0", "20000", "90", "7ff", "123", "1abcdef")
	begun := carried(t)
	lab.Await(t, "the flood runs", func() bool { return carried(t) > begun+1000 })
	b.Signal(syscall.SIGSTOP)
	for from, end := carried(t), time.Now().Add(lab.Timeout); carried(t) < from+50000 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond) // a lab may be too slow for the kernel to run out of room within seconds
	}
	b.Signal(syscall.SIGCONT)
	flood.Signal(syscall.SIGTERM)
	n := lab.AwaitSender(t, flood)
	r := b.Stop() // not before: what comes after the end is in no record
	heard, lost := others(t, b)
	nobodys := backlog(t) - before // reached no socket
	if r.RxFrames+r.RxUnknown+r.RxOverflow != 0 || heard == 0 || lost == 0 || heard+lost+nobodys < n || heard+lost+nobodys > n+r.TxFrames {
		t.Errorf("%d heard and %d lost of a flood of %d, beside %d frames of the bench, %d more reached no socket; the loop has read %d, and lost %d",
			heard, lost, n, r.TxFrames, nobodys, r.RxFrames, r.RxOverflow)
	}
	in, missing := 0, uint64(0)
	for _, e := range recorded(t, rec) {
		switch {
		case e.Kind == record.FrameEntry && e.Frame.Other:
			in++
		case e.Kind == record.EventEntry && e.Event.Kind == record.MonitorLost:
			missing += e.Event.Count
		}
	}
	if uint64(in) != heard || missing != lost {
		t.Errorf("the record has %d frames and says that %d are missing, the report %d and %d", in, missing, heard, lost)
	}
	replaysAlike(t, rec)
	t.Logf("a flood of %d: %d heard, %d lost, %d reached no socket", n, heard, lost, nobodys)
}

// The socket beside the loop follows the interface as the loop's does.
func TestLabFramesOnANewInterfaceAreRecorded(t *testing.T) {
	if !lab.InVCAN(t, "ip", "cansend") {
		return
	}
	rec := filepath.Join(t.TempDir(), "run.rec")
	b := lab.StartDemoOn(t, "vcan1", lab.UntilStopped, nil, "-besteffort", "-record", rec)
	b.AwaitTicking()
	lab.Shell(t, "cansend vcan1 7F0#01 && ip link del vcan1")
	b.AwaitOutput("bus drive is gone")
	lab.Shell(t, "ip link add dev vcan1 type vcan && ip link set vcan1 mtu 72 up")
	lab.Await(t, "a frame on the new interface is in the record", func() bool {
		lab.Shell(t, "cansend vcan1 7F1##002")
		return slices.ContainsFunc(recorded(t, rec), func(e record.Entry) bool {
			return e.Kind == record.FrameEntry && e.Frame.Other && text(&e.Frame) == "7F1##002"
		})
	})
	b.Stop()
	var got []string
	for _, e := range recorded(t, rec) {
		if e.Kind == record.FrameEntry && e.Frame.Other {
			got = append(got, text(&e.Frame))
		}
	}
	if want := []string{"7F0#01", "7F1##002"}; len(got) < 2 || !slices.Equal(slices.Compact(got), want) {
		t.Errorf("beside the bench's the record has %q, want %q, the second some times", got, want)
	}
}
