//go:build long

package labs

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/io/can"
	"lockstep/io/isotp"
	"lockstep/sched"
)

// The kernel's ISO-TP is the other end, through isotpsend and isotprecv of can-utils: classic and CAN FD,
// 11 and 29 bits, extended addresses, blocks, separation times, padding that the kernel checks.
func TestLabKernelISOTPExchangesMessages(t *testing.T) {
	if !lab.Inside(t, lab.PreemptRT, "isotpsend", "isotprecv") {
		return
	}
	bus, err := can.Dial("vcan0", []can.Filter{{}})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	for _, c := range []struct {
		name    string
		cfg     isotp.Config
		options string // of both programs
		receive string // of isotprecv
	}{
		{"normal", isotp.Config{Address: isotp.Normal(0x7E1, 0x7E9)}, "-s 7E9 -d 7E1", ""},
		{"padded", isotp.Config{Address: isotp.Normal(0x7E1, 0x7E9), Pad: true, PadByte: 0xCC, BlockSize: 4, STmin: 1}, "-s 7E9 -d 7E1 -p AA:CC -P a", "-b 3 -m F5"},
		{"fixed", isotp.Config{Address: isotp.NormalFixed(0x10, 0xF1), BlockSize: 8}, "-s 18DAF110 -d 18DA10F1", "-b 8"},
		{"extended", isotp.Config{Address: isotp.Extended(0x6F1, 0x612, 0x12, 0xF1), STmin: 0xF3}, "-s 612 -d 6F1 -x F1:12", "-m 2"},
		{"FD", isotp.Config{Address: isotp.Normal(0x7E1, 0x7E9), FD: true, Length: 64, BRS: true}, "-s 7E9 -d 7E1 -L 72:64:1", "-b 2"},
		{"FD of 20 bytes", isotp.Config{Address: isotp.Normal(0x7E1, 0x7E9), FD: true, Length: 20}, "-s 7E9 -d 7E1 -L 72:20:0", ""},
	} {
		for _, n := range []int{1, 7, 8, 63, 500, 4095, 4900} {
			name := fmt.Sprintf("%s, %d bytes", c.name, n)
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(i*31 + n)
			}
			c.cfg.MaxMessage, c.cfg.MaxWaits = 1<<16, 10
			for len(discard(bus)) > 0 {
			}
			toKernel(t, name, bus, c.cfg, data, strings.Fields(c.options+" "+c.receive))
			fromKernel(t, name, bus, c.cfg, data, strings.Fields(c.options))
		}
	}
}

// discard reads the frames that wait on a bus.
func discard(bus *can.Bus) []can.Frame {
	var frames [64]can.Frame
	return frames[:bus.Recv(frames[:])]
}

// serve serves a link on a bus until an event ends its message, and returns the event.
func serve(t *testing.T, name string, bus *can.Bus, l *isotp.Link) isotp.Event {
	t.Helper()
	for end := time.Now().Add(lab.Timeout); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		for _, f := range discard(bus) {
			l.Receive(&f, sched.Now())
		}
		for f, ok := l.Next(sched.Now()); ok && bus.Send(&f); f, ok = l.Next(sched.Now()) {
			l.Sent(sched.Now())
		}
		for _, e := range l.Take() {
			if e.Kind != isotp.Started {
				return e
			}
		}
	}
	t.Fatalf("%s: no end", name)
	return isotp.Event{}
}

// newLabLink returns a link whose timeouts allow for the emulator.
func newLabLink(t *testing.T, c isotp.Config) *isotp.Link {
	t.Helper()
	c.Bs, c.Cr = 10e9, 10e9
	l, err := isotp.NewLink(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// toKernel sends a message that isotprecv prints.
func toKernel(t *testing.T, name string, bus *can.Bus, c isotp.Config, data []byte, options []string) {
	t.Helper()
	p := lab.Start(t, "isotprecv", append(options, "vcan0")...)
	time.Sleep(200 * time.Millisecond) // its socket is open
	l := newLabLink(t, c)
	if err := l.Send(data, sched.Now()); err != nil {
		t.Fatal(err)
	}
	if e := serve(t, name, bus, l); e.Kind != isotp.Sent {
		t.Fatalf("%s: to the kernel: %v", name, e.Result)
	}
	if code := p.Wait(); code != 0 {
		t.Fatalf("%s: isotprecv: exit %d: %s", name, code, &p.Err)
	}
	got, err := hex.DecodeString(strings.Join(strings.Fields(p.Out.String()), ""))
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%s: the kernel received %.200q, %v", name, p.Out.String(), err)
	}
}

// fromKernel receives a message of isotpsend.
func fromKernel(t *testing.T, name string, bus *can.Bus, c isotp.Config, data []byte, options []string) {
	t.Helper()
	l := newLabLink(t, c)
	p := lab.Start(t, "sh", "-c", fmt.Sprintf("echo '% X' | isotpsend -b %s vcan0", data, strings.Join(options, " ")))
	e := serve(t, name, bus, l)
	if e.Kind != isotp.Received || !bytes.Equal(e.Data, data) {
		t.Fatalf("%s: from the kernel: %v, %d bytes", name, e.Result, len(e.Data))
	}
	if code := p.Wait(); code != 0 {
		t.Fatalf("%s: isotpsend: exit %d: %s", name, code, &p.Err)
	}
}
