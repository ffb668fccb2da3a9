package labs

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"lockstep/hil_test/lab"
)

// gpioAdapter emulates a CP2112, a USB adapter with 8 GPIO lines, by the device /dev/uhid. Linux drives it with
// hid-cp2112 and the GPIO core of all chips: Debian's kernels have neither gpio-sim nor gpio-mockup.
type gpioAdapter struct {
	device *os.File

	mu     sync.Mutex
	config [5]byte   // direction and drive, as the driver wrote them: AN495, 4.2
	levels [8][]byte // by line, each level, 0 or 1, that differs from the one before
}

// Events of /dev/uhid and their sizes: linux/uhid.h.
const (
	uhidGetReport      = 9
	uhidGetReportReply = 10
	uhidCreate2        = 11
	uhidSetReport      = 13
	uhidSetReportReply = 14
	uhidEventSize      = 4380
)

// Reports of a CP2112: Silicon Laboratories AN495.
const (
	gpioConfig  = 2
	gpioGet     = 3
	gpioSet     = 4
	partNumber  = 5
	smbusConfig = 6
)

// newGPIOAdapter connects an adapter and returns it with the path of its chip.
func newGPIOAdapter(t *testing.T) (a *gpioAdapter, chip string) {
	t.Helper()
	device, err := os.OpenFile("/dev/uhid", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { device.Close() })
	a = &gpioAdapter{device: device}
	report := []byte{6, 0, 0xFF, 9, 1, 0xA1, 1, 9, 1, 0x15, 0, 0x26, 0xFF, 0, 0x75, 8, 0x95, 63, 0x85, 0x10, 0x81, 2, 0xC0} // one input of 63 bytes
	create := make([]byte, uhidEventSize)
	put := binary.LittleEndian
	put.PutUint32(create, uhidCreate2)
	copy(create[4:], "CP2112 of a test")
	put.PutUint16(create[260:], uint16(len(report)))
	put.PutUint16(create[262:], 3) // USB
	put.PutUint32(create[264:], 0x10C4)
	put.PutUint32(create[268:], 0xEA90)
	copy(create[280:], report)
	if _, err := device.Write(create); err != nil {
		t.Fatal(err)
	}
	go a.serve()
	lab.Await(t, "the GPIO chip of the adapter", func() bool {
		list, _ := filepath.Glob("/sys/devices/virtual/misc/uhid/*/gpiochip*")
		if len(list) == 1 {
			chip = "/dev/" + filepath.Base(list[0])
		}
		return chip != ""
	})
	return a, chip
}

// serve answers the requests of the driver until the device is closed.
func (a *gpioAdapter) serve() {
	event, put := make([]byte, uhidEventSize), binary.LittleEndian
	for {
		if _, err := a.device.Read(event); err != nil {
			return
		}
		answer := make([]byte, uhidEventSize)
		copy(answer[4:8], event[4:8]) // number of the request
		switch put.Uint32(event) {
		case uhidGetReport:
			data := a.get(event[8])
			put.PutUint32(answer, uhidGetReportReply)
			put.PutUint16(answer[10:], uint16(len(data)))
			copy(answer[12:], data)
		case uhidSetReport:
			put.PutUint32(answer, uhidSetReportReply)
			a.set(event[12:][:put.Uint16(event[10:])])
		default:
			continue
		}
		if _, err := a.device.Write(answer); err != nil {
			return
		}
	}
}

// get returns a report.
func (a *gpioAdapter) get(report byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch report {
	case gpioConfig:
		return slices.Concat([]byte{gpioConfig}, a.config[1:])
	case gpioGet:
		latch := byte(0)
		for i, list := range a.levels {
			if len(list) > 0 {
				latch |= list[len(list)-1] << i
			}
		}
		return []byte{gpioGet, latch}
	case partNumber:
		return []byte{partNumber, 12, 3}
	case smbusConfig:
		return append([]byte{smbusConfig}, make([]byte, 13)...)
	}
	return nil
}

// set takes a report.
func (a *gpioAdapter) set(report []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case report[0] == gpioConfig && len(report) == len(a.config):
		copy(a.config[:], report)
	case report[0] == gpioSet && len(report) == 3:
		for i := range a.levels {
			level, list := report[1]>>i&1, a.levels[i]
			if report[2]>>i&1 == 1 && (len(list) == 0 || list[len(list)-1] != level) {
				a.levels[i] = append(list, level)
			}
		}
	}
}

// line returns the levels of a line so far, and whether it is an output.
func (a *gpioAdapter) line(i int) (levels []byte, output bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.levels[i]), a.config[1]>>i&1 == 1
}

// A bench switches its supply by line 3 of the chip, which is low when the supply is on. The level is read at the
// adapter, and as the kernel reads it back.
func gpioLineSwitchesTheSupply(t *testing.T) {
	a, chip := newGPIOAdapter(t)
	b := lab.StartDemoWith(t, lab.UntilStopped, []lab.Edit{{"\nbuses:", "\nnetwork: {start: run}\npower: {gpio: " + chip + ", line: 3, active: low}\nbuses:"}}, "run", "-besteffort")
	b.AwaitTicking()
	for i, c := range []struct {
		supply string
		levels string
		kernel string
	}{{"on", "\x00", "lo"}, {"off", "\x00\x01", "hi"}, {"on", "\x00\x01\x00", "lo"}} {
		if i > 0 {
			lab.MustRun(t, "ctl", "powershift-bench", "power", c.supply)
		}
		lab.Await(t, "line 3 with the supply "+c.supply, func() bool { levels, output := a.line(3); return output && string(levels) == c.levels })
		text, err := os.ReadFile("/sys/kernel/debug/gpio")
		if want := regexp.MustCompile(`(?m)\|lockstep +\) out ` + c.kernel + `.* ACTIVE LOW`); err != nil || !want.Match(text) {
			t.Errorf("supply %s: the kernel has\n%s(%v), want %v", c.supply, text, err, want)
		}
	}
	lab.MustRun(t, "ctl", "powershift-bench", "power", "9 V")
	b.AwaitOutput("a line is on or off, and has no voltage of 9 V")
	b.Stop()
	for i := range a.levels {
		if levels, output := a.line(i); (i == 3) != output || (i == 3) != (string(levels) == "\x00\x01\x00") {
			t.Errorf("line %d: output %t, levels %d", i, output, levels)
		}
	}

	// A second run is refused a line that another process holds.
	holder := lab.StartDemoWith(t, lab.UntilStopped, []lab.Edit{{"\nbuses:", "\nnetwork: {start: run}\npower: {gpio: " + chip + ", line: 3}\nbuses:"}, {"bench: powershift-bench", "bench: holder"}}, "run", "-besteffort")
	holder.AwaitTicking()
	second := lab.StartDemoWith(t, lab.UntilStopped, []lab.Edit{{"\nbuses:", "\nnetwork: {start: run}\npower: {gpio: " + chip + ", line: 3}\nbuses:"}}, "run", "-besteffort")
	second.CheckRefusal([]string{"line 3 of " + chip, "busy"})
	holder.Stop()
	if levels, _ := a.line(3); !strings.HasSuffix(string(levels), "\x01") {
		t.Errorf("line 3 has the levels %d; want high, as the supply is on", levels)
	}
}
