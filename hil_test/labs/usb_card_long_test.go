//go:build long

package labs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
)

// usbCard emulates a CAN card on USB, the "USB2CAN" of 8 devices. Linux drives it with usb_8dev over
// USB/IP: a real driver, whose controller goes off its bus and is restarted by the kernel. The emulated
// cards of the lab have no errors; this card has those that the test sends. It keeps the frames that
// it is given while its controller is on the bus.
type usbCard struct {
	t   *testing.T
	end *os.File // of the socket to the kernel
	bus string

	mu      sync.Mutex
	waiting map[uint32][]usbRequest // reads that the card has not answered, by endpoint
	answers [][]byte                // answers to commands that the driver has not read
	off     bool                    // the controller is off the bus
	frames  lab.Frames              // frames Speeds sent to the bus
}

// usbRequest is a request of the kernel: Documentation/usb/usbip_protocol.rst.
type usbRequest struct {
	command, number, endpoint uint32
	in                        bool
	length                    int
	setup                     [8]byte // of a control transfer
	data                      []byte  // to the card
}

// Constants of USB/IP, of the card's endpoints and of its protocol: linux/drivers/net/can/usb/usb_8dev.c.
const (
	usbSubmit, usbUnlink                  = 1, 2
	cardFrames, cardSends                 = 1, 2 // endpoints of frames from and to the bus
	cardAnswers, cardCommands             = 3, 4 // endpoints of commands
	cardOpen                              = 2    // command to go on the bus
	cardActive, cardWarning               = 0, 2 // states of the controller
	cardPassive, cardOff, cardNoAck       = 3, 4, 0x23
	usbHeader, usbSpeedFull, usbID        = 48, 2, 1<<16 | 1
	usbGetDescriptor, usbGetStatus        = 6, 0
	usbSetConfiguration                   = 9
	usbSetInterface                       = 11
	usbStall, usbUnlinked           int32 = -int32(unix.EPIPE), -int32(unix.ECONNRESET)
)

// newUSBCard plugs a card in, whose interface is up then. The driver gives a card up that does not
// answer within a second, which happens on a busy machine; then the card is plugged in again.
func newUSBCard(t *testing.T) *usbCard {
	t.Helper()
	for range 10 {
		c := &usbCard{t: t, waiting: map[uint32][]usbRequest{}}
		c.plug()
		for range 200 {
			if exec.Command("ip", "link", "set", c.bus, "txqueuelen", "100", "up", "type", "can", "bitrate", "500000").Run() == nil {
				t.Cleanup(c.unplug)
				return c
			}
			time.Sleep(50 * time.Millisecond)
		}
		c.unplug()
	}
	t.Fatal("the driver takes no card")
	return nil
}

// vhci is the folder of the USB host that reaches its devices over a socket.
const vhci = "/sys/devices/platform/vhci_hcd.0/"

// plug connects the card to the kernel. Its interface will be the next one of a card.
func (c *usbCard) plug() {
	c.t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	defer unix.Close(pair[1]) // the kernel has its own
	c.end, c.bus = os.NewFile(uintptr(pair[0]), "card"), "can2"
	go c.serve()
	lab.Await(c.t, "a free port for the card", func() bool { // the last card may still be there
		return os.WriteFile(vhci+"attach", fmt.Appendf(nil, "0 %d %d %d", pair[1], usbID, usbSpeedFull), 0) == nil
	})
}

// unplug takes the card from the kernel, and its interface with it.
func (c *usbCard) unplug() {
	c.t.Helper()
	err := os.WriteFile(vhci+"detach", []byte("0"), 0)
	if err = errors.Join(err, c.end.Close()); err != nil {
		c.t.Error(err)
	}
	lab.Await(c.t, c.bus+" is gone", func() bool { return !slices.Contains(interfaces(c.t), c.bus) })
}

// serve answers the kernel until the card is unplugged.
func (c *usbCard) serve() {
	for head := make([]byte, usbHeader); ; {
		if _, err := io.ReadFull(c.end, head); err != nil {
			return
		}
		word := func(i int) uint32 { return binary.BigEndian.Uint32(head[4*i:]) }
		r := usbRequest{command: word(0), number: word(1), in: word(3) == 1, endpoint: word(4), length: int(word(6)), setup: [8]byte(head[40:])}
		if r.command == usbUnlink {
			c.unlink(r.number, word(5))
			continue
		}
		if !r.in {
			r.data = make([]byte, r.length)
			if _, err := io.ReadFull(c.end, r.data); err != nil {
				return
			}
		}
		c.handle(r)
	}
}

// handle answers a request, or keeps a read until there is data.
func (c *usbCard) handle(r usbRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.endpoint == 0:
		data, status := descriptorFor(r.setup)
		c.reply(r, status, data)
	case r.endpoint == cardCommands && len(r.data) == 16:
		answer := slices.Clone(r.data) // the command, as a confirmation
		answer[3] = 0                  // success
		c.answers = append(c.answers, answer)
		if r.data[2] == cardOpen {
			c.off = false
		}
		c.reply(r, 0, nil)
	case r.endpoint == cardSends && len(r.data) == 16:
		if id := binary.BigEndian.Uint32(r.data[2:]); id == 0x200 && !c.off {
			c.frames.Data = append(c.frames.Data, slices.Clone(r.data[7:15]))
		}
		c.reply(r, 0, nil)
	case r.in:
		c.waiting[r.endpoint] = append(c.waiting[r.endpoint], r)
	default:
		c.reply(r, usbStall, nil)
	}
	for len(c.answers) > 0 && len(c.waiting[cardAnswers]) > 0 {
		c.replyFirst(cardAnswers, c.answers[0])
		c.answers = c.answers[1:]
	}
}

// replyFirst answers the oldest read of an endpoint.
func (c *usbCard) replyFirst(endpoint uint32, data []byte) {
	r := c.waiting[endpoint][0]
	c.waiting[endpoint] = c.waiting[endpoint][1:]
	c.reply(r, 0, data)
}

// unlink withdraws a request, unless it is answered already.
func (c *usbCard) unlink(number, which uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := int32(0)
	for endpoint, list := range c.waiting {
		if i := slices.IndexFunc(list, func(r usbRequest) bool { return r.number == which }); i >= 0 {
			c.waiting[endpoint] = slices.Delete(list, i, i+1)
			status = usbUnlinked
		}
	}
	c.reply(usbRequest{command: usbUnlink, number: number}, status, nil)
}

// reply sends an answer to the kernel; data is that of a read. A write is confirmed as a whole.
func (c *usbCard) reply(r usbRequest, status int32, data []byte) {
	data = data[:min(len(data), r.length)]
	length := len(r.data)
	if r.in {
		length = len(data)
	}
	head := make([]byte, usbHeader)
	for i, word := range []uint32{r.command + 2, r.number, 0, 0, 0, uint32(status), uint32(length)} {
		binary.BigEndian.PutUint32(head[4*i:], word)
	}
	if _, err := c.end.Write(append(head, data...)); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, unix.EPIPE) {
		c.t.Errorf("card: %v", err)
	}
}

// descriptorFor returns the answer of the card to a control transfer.
func descriptorFor(setup [8]byte) (data []byte, status int32) {
	const product = "USB2CAN converter"
	name := []byte{2 + 2*byte(len(product)), 3}
	for _, letter := range []byte(product) {
		name = append(name, letter, 0)
	}
	endpoint := func(address byte) []byte { return []byte{7, 5, address, 2, 64, 0, 0} } // bulk, 64 bytes
	configuration := slices.Concat([]byte{9, 2, 9 + 9 + 4*7, 0, 1, 1, 0, 0x80, 50}, []byte{9, 4, 0, 0, 4, 0xff, 0, 0, 0},
		endpoint(0x80|cardFrames), endpoint(cardSends), endpoint(0x80|cardAnswers), endpoint(cardCommands))
	switch index, kind := setup[2], setup[3]; {
	case setup[1] == usbSetConfiguration, setup[1] == usbSetInterface:
		return nil, 0
	case setup[1] == usbGetStatus:
		return []byte{0, 0}, 0
	case setup[1] != usbGetDescriptor:
	case kind == 1:
		return []byte{18, 1, 0x10, 1, 0, 0, 0, 64, 0x83, 0x04, 0x34, 0x12, 0, 1, 0, 2, 0, 1}, 0
	case kind == 2:
		return configuration, 0
	case kind == 3 && index == 0:
		return []byte{4, 3, 9, 4}, 0
	case kind == 3:
		return name, 0
	}
	return nil, usbStall
}

// report sends a state of the controller, or an error of the bus, with the error counters.
func (c *usbCard) report(state, rx, tx byte) {
	c.t.Helper()
	const errorFrame, errorFlag = 3, 4
	message := []byte{0x55, errorFrame, errorFlag, 0, 0, 0, 0, 8, state, rx, tx, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa}
	lab.Await(c.t, "the driver reads from the card", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.waiting[cardFrames]) == 0 {
			return false
		}
		if state == cardOff {
			c.off = true
		}
		c.replyFirst(cardFrames, message)
		return true
	})
}

// awaitRestart waits until the driver has put the controller back on the bus. The card then reports
// that its controller is error-active.
func (c *usbCard) awaitRestart() {
	c.t.Helper()
	lab.Await(c.t, c.bus+" is restarted", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.off
	})
	c.report(cardActive, 0, 0)
}

// speeds returns the frames Speeds that the bus has carried.
func (c *usbCard) speeds() *lab.Frames {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &lab.Frames{Data: slices.Clone(c.frames.Data)}
}

// awaitSpeeds waits until the bus has carried n more frames Speeds of a bench.
func (c *usbCard) awaitSpeeds(b *rtBench, n int) {
	c.t.Helper()
	want := len(c.speeds().Data) + n
	lab.Await(c.t, fmt.Sprintf("%d Speeds on %s", n, c.bus), func() bool {
		select {
		case <-b.Done:
			c.t.Fatalf("the run has ended, after %d Speeds\n%s%s", len(c.speeds().Data), &b.Out, &b.Err)
		default:
		}
		return len(c.speeds().Data) >= want
	})
}

// A controller is moved through its states, off the bus and back. The bench reports and records each of
// them, and its settings decide what bus-off and its end mean.
func TestLabErrorsAndBusOffOfACardHaveTheEffectOfTheirSettings(t *testing.T) {
	if !lab.Inside(t, lab.PreemptRT) {
		return
	}
	for _, c := range []struct {
		action, recover string
		code            int
	}{{"continue", "restart after 300 ms", 0}, {"safe", "restart after 300 ms", 1}, {"stop", "wait", 1}} {
		t.Run(c.action+", "+c.recover, func(t *testing.T) {
			card, log := newUSBCard(t), t.TempDir()+"/run.rec"
			b := ticking(t, card.bus, []lab.Edit{
				{"bus_off: continue", "bus_off: " + c.action}, {"    database: ", "    recover: " + c.recover + "\n    database: "},
			}, "-record", log)
			card.awaitSpeeds(b, 20)
			card.report(cardNoAck, 0, 90)
			for _, s := range []struct {
				state, tx byte
				line      string
			}{{cardWarning, 100, "error-warning (100/0)"}, {cardPassive, 130, "error-passive (130/0)"}} {
				card.report(s.state, 0, s.tx)
				b.AwaitOutput("bus drive is " + s.line)
			}
			card.report(cardOff, 0, 255)
			before := len(card.speeds().Data)
			if c.action != "stop" {
				b.AwaitOutputs("bus drive is off", 1)
			}
			restarted := strings.HasPrefix(c.recover, "restart")
			if restarted {
				card.awaitRestart()
				card.awaitSpeeds(b, 50)
			} else if c.action != "stop" {
				b.AwaitStatus(5)
			}
			if c.action != "stop" {
				b.Signal(unix.SIGINT)
			}
			if code := b.WaitFor(lab.Timeout); code != c.code || (c.code != 0) != (strings.Count(b.Err.String(), "\n") == 1) {
				t.Errorf("exit %d, want %d\n%s%s", code, c.code, &b.Out, &b.Err)
			}
			checkUSBCardReport(t, b, card.bus, c.action, restarted)
			checkUSBCardFrames(t, lab.SafeSpeeds(card.speeds())[before:], c.action, restarted)
			t.Logf("%s%s", &b.Out, &b.Err)
		})
	}
}

// checkUSBCardReport checks that the report and the record have every error and change of state.
func checkUSBCardReport(t *testing.T, b *rtBench, bus, action string, restarted bool) {
	t.Helper()
	f, r := reportOfBus(b.Bench), reportOf(t, b.Bench)
	want := []string{"error-warning", "error-passive", "bus-off"}
	if restarted {
		want = append(want, "error-active")
	}
	if got := f.states(); !slices.Equal(got, want) {
		t.Errorf("the bus was %q, want %q", got, want)
	}
	if f.NoAck != 1 || f.BusErrors != 1 || f.Passives != 1 || f.Offs != 1 || f.Unread != 0 || r.BusOffs != 1 {
		t.Errorf("%+v; bus-off %d times at the target", f, r.BusOffs)
	}
	if !(f.Seconds["bus-off"] > 0.2) && action != "stop" {
		t.Errorf("off the bus for %v s, want at least the time until the restart", f.Seconds["bus-off"])
	}
	var texts []string
	for _, c := range f.Changes {
		texts = append(texts, c.Text)
	}
	if lines := strings.Join(texts, "\n"); strings.Contains(lines, "restarted by the supervisor") != restarted || !anyLine(lines, "drive", bus, "bus-off") {
		t.Errorf("changes of the bus:\n%s", lines)
	}
	if got := busEvents(t, r.Record); !slices.Equal(got, texts) {
		t.Errorf("bus events in the record %q, in the report %q", got, texts)
	}
	switch named := r.Ended + r.Safe; {
	case action == "continue" && (r.Safe != "" || !r.Clean || r.TxDropped == 0):
		t.Errorf("the run ended by %q, safe state %q, clean %t; %d frames dropped, want some", r.Ended, r.Safe, r.Clean, r.TxDropped)
	case action != "continue" && (!strings.Contains(named, "bus") || r.Clean):
		t.Errorf("the run ended by %q, safe state %q, clean %t; want the bus as the reason", r.Ended, r.Safe, r.Clean)
	}
}

// checkUSBCardFrames checks the frames after bus-off; safe lists those with safe values.
func checkUSBCardFrames(t *testing.T, safe []bool, action string, restarted bool) {
	t.Helper()
	switch {
	case !restarted && len(safe) > 0:
		t.Errorf("%d frames from a controller that is off its bus", len(safe))
	case restarted && len(safe) < 50:
		t.Errorf("%d frames after the restart, want 50", len(safe))
	case restarted && slices.Contains(safe[5:], action != "safe"): // the first ones may have waited in the driver
		t.Errorf("after the restart of a bench with bus_off: %s, safe values in %v", action, safe)
	}
}
