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

// loggedFrame is a frame of a log of candump.
type loggedFrame struct {
	us    int64 // since 1970
	frame string
}

// parseCandump returns the frames of a log of candump -L from an instant on, ns since 1970, and
// their directions, a character for each frame.
func parseCandump(t *testing.T, text string, from int64) (list []loggedFrame, directions string) {
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
		if i := strings.Index(f[2], "##") + 2; i > 1 && f[2][i] >= '4' { // from Linux 6.1 on, 4 marks a CAN FD frame
			f[2] = f[2][:i] + string(f[2][i]-4) + f[2][i+1:]
		}
		list = append(list, loggedFrame{us, f[2]})
		if directions += "-"; len(f) > 3 {
			directions = directions[:len(directions)-1] + f[3]
		}
	}
	return list, directions
}

// differences returns for each frame how much more often it is in a than in b, if not 0.
func differences(a, b []loggedFrame) map[string]int {
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

// busyRun records a run with frames of all kinds from two other senders; half of these frames have
// identifiers of the bench. It returns the path of the record, the log of candump, the number of
// frames of the senders, and the numbers of frames that the bus monitor received and lost.
func busyRun(t *testing.T, rate string) (rec, log string, sent, monitored, lost uint64) {
	t.Helper()
	dir := t.TempDir()
	rec = filepath.Join(dir, "run.rec")
	lab.Shell(t, "cangw -A -s vcan1 -d vcan0 -e")
	defer lab.Shell(t, "cangw -F")
	dump := lab.StartCandump(t, "vcan0")
	b := lab.StartDemoOn(t, "vcan0", lab.UntilStopped, nil, "-besteffort", "-record", rec)
	unit := lab.Start(t, lab.Command(t), "ecu", "powershift", "-bus", "vcan0")
	b.AwaitTicking()
	// The bench sends 200 to 202, too. Here they come from another program on this host and,
	// through the gateway of the kernel, from another node.
	ids := []string{"7ff", "123", "1abcdef", "200", "201", "202"}
	here, there := lab.SendRandom(t, "vcan0", rate, "3", ids...), lab.SendRandom(t, "vcan1", rate, "3", ids...)
	lab.Shell(t, "cansend vcan0 123##3112233445566778899AABBCC && cansend vcan0 1ABCDEF0#R && cansend vcan0 7FF#R3")
	sent = lab.AwaitSender(t, here) + lab.AwaitSender(t, there)
	unit.Signal(syscall.SIGTERM) // before the end of the record
	unit.Wait()
	b.Stop()
	lab.AwaitQuiet(dump)
	dump.Signal(syscall.SIGINT)
	dump.Wait()
	monitored, lost = monitorCounts(t, b)
	checkReplay(t, rec)
	return rec, dump.Out.String(), sent, monitored, lost
}

// monitorCounts returns the numbers of frames that the bus monitor received and lost, by the
// report.
func monitorCounts(t *testing.T, b *lab.Bench) (monitored, lost uint64) {
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

// checkReplay replays a record and checks that the replay is identical.
func checkReplay(t *testing.T, rec string) {
	t.Helper()
	p := lab.Start(t, lab.Command(t), "replay", rec)
	if code := p.Wait(); code != 0 {
		t.Errorf("replay: exit %d\n%s%s", code, &p.Out, &p.Err)
	}
	t.Logf("replay: %s", strings.TrimSpace(p.Out.String()))
}

// recorded returns the entries of a record without its ticks.
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

// The test compares a record with the log of candump.
func TestLabRecordHoldsEveryFrameOnABus(t *testing.T) {
	if !lab.InVCAN(t, "candump", "cangw", "cansend") {
		return
	}
	rec, dumped, sent, monitored, lost := busyRun(t, "400")
	in, err := record.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	seen, _ := parseCandump(t, dumped, in.Header.Start)
	left := map[loggedFrame]int{}
	for _, f := range seen {
		left[f]++
	}
	sentIDs := map[uint32]bool{}
	for _, m := range in.Header.Buses[0].Messages {
		sentIDs[m.ID] = m.Sent
	}
	other, sameID, received, wrong := uint64(0), 0, 0, 0
	for _, e := range recorded(t, rec) {
		if e.Kind == record.EventEntry && (e.Event.Kind == record.Lost || e.Event.Kind == record.MonitorLost) {
			t.Errorf("%+v", e.Event)
		}
		if e.Kind != record.FrameEntry || e.Frame.Sent {
			continue
		}
		// All sockets get the same stamp of a frame.
		key := loggedFrame{e.Frame.Time / 1000, formatFrame(&e.Frame)}
		if left[key]--; left[key] < 0 {
			if wrong++; wrong < 4 {
				t.Errorf("%+v is in the record; candump has it less often or at another time", key)
			}
		}
		received++
		if e.Frame.Other {
			if other++; sentIDs[e.Frame.ID] {
				sameID++
			}
		}
	}
	if other != monitored || lost != 0 || sameID == 0 || uint64(sameID)+3 < sent/2 || received == int(other) || wrong > 0 {
		t.Errorf("%d monitored frames in the record, %d with an identifier of the bench, of %d received ones; candump lacks %d; the report says %d, and %d lost",
			other, sameID, received, wrong, monitored, lost)
	}
	log := filepath.Join(t.TempDir(), "run.log")
	lab.Shell(t, lab.Command(t)+" export "+rec+" -o "+log)
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	exported, directions := parseCandump(t, string(data), 0)
	if diff := differences(seen, exported); len(diff) != 0 || len(seen) < 2000 {
		t.Errorf("candump has %d frames, the export %d; surplus of candump by frame: %.2000s", len(seen), len(exported), fmt.Sprint(diff))
	}
	ours := strings.Count(directions, "T")
	t.Logf("candump: %d frames; export: %d, %d of them sent by the bench; %d monitored, %d of them with an identifier of the bench",
		len(seen), len(exported), ours, other, sameID)
	compareStamps(t, seen, exported, len(exported)-ours)
}

// compareStamps compares the times of an export with those of candump. At least nine tenths of the
// received frames must have equal times.
func compareStamps(t *testing.T, seen, exported []loggedFrame, received int) {
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
			continue // reported by the caller
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
	if 10*equal < 9*received {
		t.Errorf("%d of %d times are equal to those of candump, want nine tenths of %d received frames", equal, len(exported), received)
	}
}

// formatFrame returns a frame in the form of candump.
func formatFrame(f *record.Frame) string {
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

// file is a file in memory that is only appended to.
type file []byte

func (b *file) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (b *file) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

// backlog returns the number of packets that the kernel has dropped between all interfaces and
// sockets: the sum of the second column of softnet_stat over all CPUs.
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

// carried returns the number of frames that vcan0 has carried.
func carried(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(lab.ReadTrimmed(t, "/sys/class/net/vcan0/statistics/tx_packets")))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// While the supervisor is stopped, the kernel drops frames for which the socket of the bus monitor
// has no room. Every dropped frame is counted, and the loop is not affected.
func TestLabBusMonitorCountsEveryFrameOfAFlood(t *testing.T) {
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
		time.Sleep(100 * time.Millisecond) // a slow lab takes long to fill the socket
	}
	b.Signal(syscall.SIGCONT)
	flood.Signal(syscall.SIGTERM)
	n := lab.AwaitSender(t, flood)
	r := b.Stop() // after the flood, so that the record holds all frames
	monitored, lost := monitorCounts(t, b)
	dropped := backlog(t) - before
	if r.RxFrames+r.RxUnknown+r.RxOverflow != 0 || monitored == 0 || lost == 0 || monitored+lost+dropped < n || monitored+lost+dropped > n+r.TxFrames {
		t.Errorf("%d monitored and %d lost of a flood of %d and %d frames of the bench, %d dropped before the sockets; the loop has read %d, and lost %d",
			monitored, lost, n, r.TxFrames, dropped, r.RxFrames, r.RxOverflow)
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
	if uint64(in) != monitored || missing != lost {
		t.Errorf("%d monitored frames and %d lost ones in the record, %d and %d in the report", in, missing, monitored, lost)
	}
	checkReplay(t, rec)
	t.Logf("a flood of %d: %d monitored, %d lost, %d dropped before the sockets", n, monitored, lost, dropped)
}

// The bus monitor binds to a new interface of the same name, as the loop does.
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
			return e.Kind == record.FrameEntry && e.Frame.Other && formatFrame(&e.Frame) == "7F1##002"
		})
	})
	b.Stop()
	var got []string
	for _, e := range recorded(t, rec) {
		if e.Kind == record.FrameEntry && e.Frame.Other {
			got = append(got, formatFrame(&e.Frame))
		}
	}
	if want := []string{"7F0#01", "7F1##002"}; len(got) < 2 || !slices.Equal(slices.Compact(got), want) {
		t.Errorf("monitored frames in the record %q, want %q, the second one or more times", got, want)
	}
}
