package unitprogram

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/io/can"
	"lockstep/rt/bench"
)

// TestMain runs this binary as the program of a test if its first argument is "program".
func TestMain(m *testing.M) {
	if os.Getenv("UNITPROGRAM_RELAY") != "" && len(os.Args) > 2 && os.Args[1] == RelayCommand {
		os.Unsetenv("UNITPROGRAM_RELAY")
		relayMain()
	}
	if len(os.Args) > 2 && os.Args[1] == "program" {
		behave(os.Args[2])
		return
	}
	lab.Main(m)
}

// put writes a message with its fields at the places that the guide gives, without the code of the
// product.
func put(kind, bus, flags, length byte, id uint32, at int64) {
	b := make([]byte, 80)
	b[0], b[1], b[2], b[3] = kind, bus, flags, length
	binary.LittleEndian.PutUint32(b[4:], id)
	binary.LittleEndian.PutUint64(b[8:], uint64(at))
	if _, err := syscall.Write(3, b); err != nil {
		os.Exit(9)
	}
}

// get reads a message; ok is false at the end.
func get() (kind byte, id uint32, at int64, ok bool) {
	b := make([]byte, 80)
	n, err := syscall.Read(3, b)
	return b[0], binary.LittleEndian.Uint32(b[4:]), int64(binary.LittleEndian.Uint64(b[8:])), err == nil && n == 80
}

// answer answers every grid point with a frame, and calls at before the answer to a grid point.
func answer(at int64, do func()) {
	put(1, 0, 0, 0, 1, 0)
	for n := int64(1); ; {
		kind, _, when, ok := get()
		if !ok {
			return
		}
		if kind == 5 {
			if n == at {
				do()
			}
			put(4, 0, 0, 8, 0x110, 0)
			put(6, 0, 0, 0, 0, when)
			n++
		}
	}
}

// behave is a program with a fault.
func behave(how string) {
	forever := func() { time.Sleep(time.Hour) }
	wrong := map[string]func(){
		"exit":        func() { fmt.Fprintln(os.Stderr, "no fluid"); os.Exit(3) },
		"leave":       func() { os.Exit(0) },
		"crash":       func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); forever() },
		"hang":        forever,
		"close":       func() { syscall.Close(3); forever() },
		"short":       func() { _, _ = syscall.Write(3, make([]byte, 12)) },
		"long":        func() { _, _ = syscall.Write(3, make([]byte, 200)) },
		"empty":       func() { _, _ = syscall.Write(3, nil); _ = syscall.Sendto(3, nil, 0, nil) },
		"kind":        func() { put(77, 0, 0, 0, 0, 0) },
		"bus":         func() { put(4, 5, 0, 8, 0x110, 0) },
		"identifier":  func() { put(4, 0, 0, 8, 0x800, 0) },
		"error frame": func() { put(4, 0, 0, 8, 0x20000001, 0) },
		"length":      func() { put(4, 0, 0, 9, 0x110, 0) },
		"fd length":   func() { put(4, 0, 4, 13, 0x110, 0) },
		"flags":       func() { put(4, 0, 1, 8, 0x110, 0) },
		"flood": func() {
			for {
				put(4, 0, 0, 8, 0x110, 0)
			}
		},
		"done flood": func() {
			for {
				put(6, 0, 0, 0, 0, 0)
			}
		},
	}
	switch how {
	case "version":
		put(1, 0, 0, 0, 2, 0)
		forever()
	case "no greeting":
		put(4, 0, 0, 8, 0x110, 0)
		forever()
	case "stranger": // does not know the socket
		fmt.Println("a program for SocketCAN")
	case "deaf on the pair":
		put(1, 0, 0, 0, 1, 0)
		forever()
	case "answers its pid":
		fmt.Println(os.Getpid())
		answer(0, nil)
	case "deaf": // done for all times, and reads nothing
		put(1, 0, 0, 0, 1, 0)
		put(6, 0, 0, 0, 0, 1<<62)
		forever()
	case "chatter": // done for all times, and writes while it reads nothing
		put(1, 0, 0, 0, 1, 0)
		put(6, 0, 0, 0, 0, 1<<62)
		for {
			put(4, 0, 0, 8, 0x110, 0)
		}
	case "status at the end":
		answer(0, nil)
		os.Exit(4)
	case "child": // starts a child in its group, and ends
		c := exec.Command("/bin/sleep", "1000")
		if err := c.Start(); err != nil {
			os.Exit(8)
		}
		fmt.Println(c.Process.Pid)
		answer(0, nil)
	case "escaped": // starts a child outside of its group
		c := exec.Command("/bin/sleep", "1000")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			os.Exit(8)
		}
		fmt.Println(c.Process.Pid)
		answer(0, nil)
	case "times": // of frames: before the last grid point, in the step, earlier, in the future, none
		put(1, 0, 0, 0, 1, 0)
		for {
			kind, _, when, ok := get()
			switch {
			case !ok:
				return
			case kind == 5:
				for _, at := range []int64{when - 7e6, when - 3e6, when - 4e6, 0} {
					put(4, 0, 0, 8, 0x110, at)
				}
				put(6, 0, 0, 0, 0, when-1e6)
				put(4, 0, 0, 8, 0x110, when-3e6)
				put(4, 0, 0, 8, 0x110, when+7e6)
				put(6, 0, 0, 0, 0, when)
			}
		}
	case "deaf to SIGTERM": // does not end with the run
		signal.Ignore(syscall.SIGTERM)
		answer(0, nil)
		forever()
	case "stubborn": // does not end with the run
		fmt.Println(os.Getpid())
		answer(0, nil)
		forever()
	case "rights":
		text, _ := os.ReadFile("/proc/self/status")
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "CapAmb:") {
				fmt.Println(line)
			}
		}
		wd, _ := os.Getwd()
		fmt.Printf("in %s, buses %q, %s %s\n", wd, os.Getenv("LOCKSTEP_BUSES"), os.Getenv("CAN_INTERFACE"), os.Getenv("CAN_CHANNEL"))
		answer(0, nil)
	default:
		if wrong[how] == nil {
			answer(0, nil)
			return
		}
		answer(5, wrong[how])
	}
}

// newUnit returns a program of this binary on one bus, and the loop's end of the bus.
func newUnit(t *testing.T, how string, hang time.Duration) (Spec, []*can.Bus, *can.Bus) {
	t.Helper()
	target, unit, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*can.Bus
	for i, f := range []*os.File{target, unit} {
		if ends[i], err = can.Inherit(f); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Name: "./tcu", Path: self, Args: []string{"program", how}, Dir: t.TempDir(), Hang: hang,
		Bench: "b", PeriodNs: 5e6, Buses: []Bus{{Name: "drive"}}, CPU: -1}
	return s, []*can.Bus{ends[1]}, ends[0]
}

// drive runs a program for ticks of 5 ms, with sent frames of the loop at each. It returns the error and
// the frames that the loop received, by tick.
func drive(s Spec, ends []*can.Bus, loop *can.Bus, ticks, sent int) (u *Stepped, received []int, err error) {
	u, err = Start(s, ends, func() bool { return false })
	var frames [256]can.Frame
	for k := int64(1); err == nil && k <= int64(ticks); k++ {
		if err = u.Advance(k * 5e6); err != nil {
			break
		}
		received = append(received, loop.Recv(frames[:]))
		for range sent {
			if err == nil {
				err = u.Receive(0, &can.Frame{ID: 0x200, Len: 8}, k*5e6)
			}
		}
	}
	return u, received, err
}

// patient is a time that a program which answers never takes, also on a busy machine.
const patient = 5 * time.Minute

func TestFaultsOfAProgramAreNamedWithTheirTick(t *testing.T) {
	for how, want := range map[string]string{
		"exit":        "./tcu ended before tick 5 (0.025 s): exit status 3",
		"leave":       "./tcu ended before tick 5 (0.025 s): exit status 0",
		"crash":       "./tcu ended before tick 5 (0.025 s): signal: killed",
		"close":       "./tcu closed its socket before tick 5 (0.025 s)",
		"short":       "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a message of 12 bytes; a message has 80",
		"long":        "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a message of more than 80 bytes",
		"empty":       "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a message of 0 bytes; a message has 80",
		"kind":        "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a message of kind 77",
		"bus":         "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a frame on bus 5, which the socket does not carry",
		"identifier":  "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a frame with identifier 0x800; above 0x7FF it needs the bit 0x80000000",
		"error frame": "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a frame with identifier 0x20000001, which marks an error frame",
		"length":      "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a frame of 9 bytes; above 8 it needs the flag 4 of CAN FD",
		"fd length":   "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a CAN FD frame of 13 bytes, which is no length of CAN FD",
		"flags":       "./tcu sent before tick 5 (0.025 s) what the protocol does not have: a frame with the flags 0x1",
		"flood":       "./tcu floods: it sent before tick 5 (0.025 s) more than 256 frames on drive",
		"done flood":  "./tcu floods: it sent before tick 5 (0.025 s) 256 times that it was done",
		"version":     "./tcu speaks version 2 of the protocol; this lockstep speaks version 1",
		"no greeting": "./tcu sent before its greeting what the protocol does not have: a message of kind 4",
		"stranger":    "./tcu ended before its greeting: exit status 0",
		"chatter":     "./tcu floods: it sent before tick 20 (0.1 s) more than 16384 messages and read none",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, ends, loop := newUnit(t, how, patient)
			sent := 2
			if how == "chatter" { // the buffer of the socket is full at some tick
				sent = 2000
			}
			u, received, err := drive(s, ends, loop, 50, sent)
			if err == nil {
				t.Fatalf("no error, %d ticks", len(received))
			}
			got := err.Error()
			if how == "chatter" {
				got, want = got[strings.Index(got, ") "):], want[strings.Index(want, ") "):]
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
			for k, n := range received {
				if n != 1 && how != "chatter" {
					t.Errorf("tick %d received %d frames, want 1", k+1, n)
				}
			}
			line, end := u.Close(true)
			if end != nil || !u.p.ended() || !strings.HasPrefix(line, "./tcu: ") {
				t.Errorf("after the end: %q, %v", line, end)
			}
			if out := string(u.Output.Bytes()); how == "exit" && out != "no fluid\n" {
				t.Errorf("its output is %q", out)
			}
		})
	}
}

// The bound of a hang is the only time of the host that counts: it ends the run.
func TestAProgramThatHangsEndsTheRun(t *testing.T) {
	for how, want := range map[string]string{
		"hang": "./tcu hangs: no answer before tick 5 (0.025 s) within 2 s",
		"deaf": "./tcu hangs: no answer before tick 1 (0.005 s) within 2 s",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, ends, loop := newUnit(t, how, patient)
			u, _, err := (*Stepped)(nil), []int(nil), error(nil)
			if u, err = Start(s, ends, func() bool { return false }); err != nil {
				t.Fatal(err)
			}
			defer u.Close(true)
			var frames [256]can.Frame
			for k := int64(1); err == nil; k++ {
				if k == 5 || how == "deaf" {
					u.spec.Hang = 2 * time.Second
				}
				if err = u.Advance(k * 5e6); err != nil {
					break
				}
				loop.Recv(frames[:])
				for range 1000 {
					if how == "deaf" && err == nil {
						err = u.Receive(0, &can.Frame{ID: 0x200, Len: 8}, k*5e6)
					}
				}
			}
			if err.Error() != want {
				t.Errorf("%q, want %q", err, want)
			}
		})
	}
}

func TestAStoppedRunDoesNotWaitForItsProgram(t *testing.T) {
	s, ends, _ := newUnit(t, "hang", patient)
	stop := false
	u, err := Start(s, ends, func() bool { return stop })
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close(true)
	for k := int64(1); err == nil; k++ {
		stop = k == 5
		err = u.Advance(k * 5e6)
	}
	if want := "./tcu had not answered before tick 5 (0.025 s) when the run was stopped"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// A frame of the program has an instant in its step, and none before that of the frame before.
func TestFramesOfAProgramHaveAnInstantInTheirStep(t *testing.T) {
	s, ends, loop := newUnit(t, "times", patient)
	u, err := Start(s, ends, func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	var frames [256]can.Frame
	for k := int64(1); k <= 3; k++ {
		var got []int64
		u.Sent = func(bus int, at int64) { got = append(got, at-k*5e6) }
		if err := u.Advance(k * 5e6); err != nil {
			t.Fatal(err)
		}
		want := []int64{-5e6, -3e6, -3e6, -3e6, -1e6, 0}
		if n := loop.Recv(frames[:]); n != len(want) || !slices.Equal(got, want) {
			t.Errorf("tick %d: %d frames at %d ns after the grid point, want %d", k, n, got, want)
		}
	}
	if _, err := u.Close(false); err != nil {
		t.Error(err)
	}
}

func TestAProgramThatDoesNotEndWithTheRunIsNamed(t *testing.T) {
	t.Parallel()
	s, ends, loop := newUnit(t, "deaf to SIGTERM", patient)
	u, _, err := drive(s, ends, loop, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	line, err := u.Close(false)
	if want := "./tcu hangs: it ended neither with the run nor by SIGTERM"; err == nil || err.Error() != want ||
		!strings.HasSuffix(line, "; it was ended, signal: killed") {
		t.Errorf("%q, %v; want %q", line, err, want)
	}
}

func TestAProgramEndsWithTheRunAndItsStatusCounts(t *testing.T) {
	s, ends, loop := newUnit(t, "answer", patient)
	u, received, err := drive(s, ends, loop, 30, 3)
	if err != nil || len(received) != 30 {
		t.Fatalf("%d ticks, %v", len(received), err)
	}
	line, err := u.Close(false)
	if want := "./tcu: 30 frames sent, 90 received, 0 dropped by a full bus, 0 not read by the program"; line != want || err != nil {
		t.Errorf("%q, %v; want %q", line, err, want)
	}
	if dropped, unread, ok := Lost(line); dropped != 0 || unread != 0 || !ok {
		t.Errorf("counts of %q: %d, %d, %v", line, dropped, unread, ok)
	}

	s, ends, loop = newUnit(t, "status at the end", patient)
	if u, _, err = drive(s, ends, loop, 3, 0); err != nil {
		t.Fatal(err)
	}
	if _, err = u.Close(false); err == nil || err.Error() != "./tcu ended with the run, but with exit status 4" {
		t.Errorf("exit status 4 after the end: %v", err)
	}
}

// A child of the program holds its socket and its output, and is ended all the same.
func TestTheProcessGroupEndsWithTheProgram(t *testing.T) {
	for _, how := range []string{"child", "stubborn"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, ends, loop := newUnit(t, how, patient)
			u, _, err := drive(s, ends, loop, 3, 0)
			if err != nil {
				t.Fatal(err)
			}
			line, err := u.Close(false)
			if how == "stubborn" && !strings.HasSuffix(line, "; it was ended, signal: terminated") || err != nil {
				t.Errorf("%q, %v", line, err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(u.Output.Bytes())))
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(patient); ; time.Sleep(time.Millisecond) { // init collects the child
				state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				if err != nil || bytes.Contains(state, []byte(") Z ")) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("process %d lives on: %s", pid, state)
				}
			}
		})
	}
}

// setpriv gives a test the capability of a service, which its children would inherit.
func TestAProgramHasNoRightsOfTheService(t *testing.T) {
	if os.Getenv("UNITPROGRAM_INNER") == "" {
		setpriv, err := exec.LookPath("setpriv")
		if err != nil || os.Getuid() != 0 {
			lab.Skip(t, "needs root and setpriv: apt-get install util-linux")
		}
		self, _ := os.Executable()
		c := exec.Command(setpriv, "--inh-caps", "+sys_nice", "--ambient-caps", "+sys_nice", self, "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), "UNITPROGRAM_INNER=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	own, _ := os.ReadFile("/proc/self/status")
	if !bytes.Contains(own, []byte("CapAmb:\t0000000000800000")) {
		t.Fatalf("the test itself has no ambient capability:\n%s", own)
	}
	s, ends, loop := newUnit(t, "rights", patient)
	u, _, err := drive(s, ends, loop, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = u.Close(false); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("CapAmb:\t0000000000000000\nin %s, buses \"\", lockstep drive\n", s.Dir)
	if out := string(u.Output.Bytes()); out != want {
		t.Errorf("the program has %q, want %q", out, want)
	}
}

func TestEnvironmentNamesTheBuses(t *testing.T) {
	for _, c := range []struct {
		buses []Bus
		want  string
	}{
		{[]Bus{{Name: "drive"}, {Name: "body"}}, "LOCKSTEP_BUSES= LOCKSTEP_FD=3 CAN_INTERFACE=lockstep CAN_CHANNEL=drive"},
		{[]Bus{{Name: "drive", Interface: "vcan0"}, {Name: "body", Interface: "vcan1"}},
			"LOCKSTEP_BUSES=drive=vcan0,body=vcan1 CAN_INTERFACE=socketcan CAN_CHANNEL=vcan0"},
		{[]Bus{{Name: "drive", Interface: "file:a.log"}, {Name: "body"}},
			"LOCKSTEP_BUSES= LOCKSTEP_FD=3 CAN_INTERFACE=lockstep CAN_CHANNEL=body"},
	} {
		s := Spec{Buses: c.buses}
		if got := strings.Join(s.env(), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.buses, got, c.want)
		}
	}
}

func TestHeaderForCIsShort(t *testing.T) {
	if n := bytes.Count(Header, []byte("\n")); n > 100 {
		t.Errorf("lockstep.h has %d lines, want at most 100", n)
	}
}

// A long name of a bus is cut between two letters.
func TestLongNamesAreCutAtALetter(t *testing.T) {
	if got := fitted(strings.Repeat("ä", 40)); got != strings.Repeat("ä", 32) {
		t.Errorf("%q", got)
	}
	if got := fitted("x" + strings.Repeat("ä", 40)); got != "x"+strings.Repeat("ä", 31) {
		t.Errorf("%q", got)
	}
}

func TestProgramOfABenchIsFoundBesideTheBenchFile(t *testing.T) {
	dir := t.TempDir()
	tcu := filepath.Join(dir, "tcu")
	if err := os.WriteFile(tcu, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "b.yaml")
	text := "bench: b\nplant: two-masses\nperiod: 5 ms\noverrun: stop\ncontrol_unit: {exec: [./tcu, --fast], hang: 10 s}\n" +
		"buses: {drive: {interface: pair, database: x.dbc}, body: {interface: vcan0, database: x.dbc}}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := bench.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := SpecOf(b, b.HasUnit)
	if err != nil || s.Path != tcu || s.Dir != dir || len(s.Args) != 1 || s.Args[0] != "--fast" || s.Hang != 10*time.Second ||
		s.Buses[0].Interface != "" || s.Buses[1].Interface != "vcan0" {
		t.Errorf("%+v, %v", s, err)
	}
}
