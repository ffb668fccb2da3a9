package gearbox

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// journal is a log that may be read while the unit writes.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// bench is the other side of the bus: a socket on which every packet is a frame.
type bench struct {
	t    *testing.T
	file *os.File
	fd   int // of the unit's side
	log  journal
	stop chan struct{}
	end  chan error // Run's result
}

func powershiftType(t *testing.T) unit.Type { return unittest.Type(t, Types(), "powershift") }

// connect starts a unit on one end of a socket pair.
func connect(t *testing.T) *bench {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, file: os.NewFile(uintptr(fds[0]), "bench"), fd: fds[1], stop: make(chan struct{}), end: make(chan error, 1)}
	t.Cleanup(func() { b.file.Close() })
	bus := os.NewFile(uintptr(fds[1]), "unit")
	go func() { b.end <- unit.Run(powershiftType(t), bus, &b.log, b.stop) }()
	return b
}

func (b *bench) send(f can.Frame) {
	b.t.Helper()
	packet, err := can.Marshal(f)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write(packet)
}

func (b *bench) write(packet []byte) {
	b.t.Helper()
	if _, err := b.file.Write(packet); err != nil {
		b.t.Fatal(err)
	}
}

// speeds packs a Speeds frame.
func speeds(w [4]float64) can.Frame {
	var word uint64
	for i, v := range w {
		word |= uint64(int64(math.RoundToEven(v/radPerBit[i]))) & 0x7FFF << (15 * i)
	}
	f := can.Frame{ID: idSpeeds, Length: 8}
	for i := range f.Data {
		f.Data[i] = uint8(word >> (8 * i))
	}
	return f
}

// read returns the frames that arrive within d.
func (b *bench) read(d time.Duration) (frames []can.Frame) {
	b.t.Helper()
	b.file.SetReadDeadline(time.Now().Add(d))
	packet := make([]byte, 256)
	for {
		n, err := b.file.Read(packet)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return frames
		}
		var f can.Frame
		if err == nil {
			err = can.Unmarshal(packet[:n], &f)
		}
		if err != nil || n != 16 {
			b.t.Fatalf("a packet of %d bytes: %v", n, err)
		}
		frames = append(frames, f)
	}
}

// result waits for the end of the unit.
func (b *bench) result() error {
	b.t.Helper()
	select {
	case err := <-b.end:
		return err
	case <-time.After(time.Minute):
		b.t.Fatal("the unit did not end within a minute")
		return nil
	}
}

// countsOf returns the counts in the last line of a log.
func countsOf(t *testing.T, log string) unit.Counts {
	t.Helper()
	log = strings.TrimSuffix(log, "\n")
	c, err := unit.ParseCounts(log[strings.LastIndex(log, "\n")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUnitSleepsUntilItReceivesSpeeds(t *testing.T) {
	b := connect(t)
	if frames := b.read(50 * time.Millisecond); len(frames) != 0 {
		t.Errorf("sent %d frames before the first Speeds", len(frames))
	}
	b.send(speeds(turning(first, 2)))
	if frames := b.read(100 * time.Millisecond); len(frames) < 2 {
		t.Errorf("sent %d frames in 100 ms after Speeds, want about 20", len(frames))
	}
	close(b.stop)
	if err := b.result(); err != nil {
		t.Errorf("stopped: %v, want nil", err)
	}
}

func TestBothPressureFramesAreSentEveryCycleWithoutACounterGap(t *testing.T) {
	b := connect(t)
	var frames []can.Frame
	for range 60 { // 0.3 s, before the first shift
		b.send(speeds(turning(first, 2)))
		read := b.read(5 * time.Millisecond)
		if strings.Contains(b.log.String(), ": shift ") { // a busy host
			break
		}
		frames = append(frames, read...)
	}
	if len(frames) < 20 {
		t.Fatalf("%d frames in 0.3 s, want about 60", len(frames))
	}
	// 18 bar = 1800 = 0x708; 17.5 bar = 1750 = 0x6D6.
	data := [2][8]uint8{{0x08, 0x07, 0x00, 0xD6, 0x06}, {0x00, 0x80, 0x70}}
	for i, f := range frames {
		want := can.Frame{ID: 0x110 + uint32(i%2), Length: 8, Data: data[i%2]}
		want.Data[6] = uint8(i / 2 % 16 << 4)
		if f != want {
			t.Fatalf("frame %d: % X, want % X", i, f, want)
		}
	}
}

func TestMalformedFramesAreCountedAndIgnored(t *testing.T) {
	b := connect(t)
	for _, size := range []int{1, 7, 15, 17, 72, 200} {
		b.write(make([]byte, size))
	}
	short := speeds(turning(first, 2))
	short.Length = 4
	b.send(short)
	if frames := b.read(50 * time.Millisecond); len(frames) != 0 {
		t.Errorf("a malformed frame woke the unit: %d frames", len(frames))
	}
	b.send(speeds(turning(first, 2)))
	if frames := b.read(50 * time.Millisecond); len(frames) == 0 {
		t.Error("the unit does not answer after malformed frames")
	}
	close(b.stop)
	if err := b.result(); err != nil {
		t.Error(err)
	}
	if got := countsOf(t, b.log.String()); got.Malformed != 7 {
		t.Errorf("%d malformed, want 7", got.Malformed)
	}
}

func TestFramesMissingByTheirCountersAreCounted(t *testing.T) {
	b := connect(t)
	for _, counter := range []uint8{0, 1, 2, 5, 6, 15, 0, 1} { // 2 missing, then 8
		f := speeds(turning(first, 2))
		f.Data[7] |= counter << 4
		b.send(f)
	}
	for _, counter := range []uint8{7, 8, 10} { // 1: the first one may have any
		b.send(can.Frame{ID: idStatus, Length: 8, Data: [8]uint8{7: counter << 4}})
	}
	b.read(50 * time.Millisecond)
	close(b.stop)
	if err := b.result(); err != nil {
		t.Error(err)
	}
	if got := countsOf(t, b.log.String()); got.Received != 11 || got.Malformed != 0 || got.Lost != 11 {
		t.Errorf("%v; want 11 received, 0 malformed, 11 lost", got)
	}
}

func TestUnitInMotionRecognisesANewBench(t *testing.T) {
	s := newUnit(t, "powershift", io.Discard, io.Discard).Law.(*powershift)
	for i, counter := range []uint8{3, 4, 0, 1, 4} { // asleep before the third: a new one; then 2 missing
		f := speeds(turning(first, 2))
		f.Data[7] |= counter << 4
		if i == 2 {
			s.Awake = false
		}
		s.Receive(&f, time.Now())
	}
	if s.Counts.Lost != 2 {
		t.Errorf("%d frames lost, want 2", s.Counts.Lost)
	}
	f := speeds(turning(first, 2))
	f.Data[7] |= 7 << 4
	s.Awake = false // and the same bench goes on after a second: 5, 6
	if s.Receive(&f, time.Now()); s.Counts.Lost != 4 {
		t.Errorf("%d frames lost, want 4", s.Counts.Lost)
	}
}

func TestGarbageOnTheBusDoesNotStopTheUnit(t *testing.T) {
	b := connect(t)
	garbage := can.Frame{ID: 0x7FF, Length: 8}
	var frames []can.Frame
	for range 30 {
		b.send(speeds(turning(first, 2)))
		for range 100 { // 20,000 frames/s
			b.send(garbage)
		}
		frames = append(frames, b.read(5*time.Millisecond)...)
	}
	if len(frames) < 10 {
		t.Errorf("%d frames in 0.15 s, want about 30", len(frames))
	}
}

func TestSilenceEndsTheDriveAndSpeedsStartANewOne(t *testing.T) {
	b := connect(t)
	b.send(speeds(turning(first, 2)))
	b.read(1200 * time.Millisecond)
	if frames := b.read(50 * time.Millisecond); len(frames) != 0 {
		t.Errorf("%d frames sent a second after the last Speeds", len(frames))
	}
	b.send(speeds(turning(gear{2, 4, 7}, 9)))
	frames := b.read(100 * time.Millisecond)
	if len(frames) == 0 {
		t.Fatal("Speeds did not wake the unit again")
	}
	if f := frames[0]; f.Data[3] != 0 {
		t.Errorf("new drive of a vehicle in motion: clutch 3 engaged: % X", f)
	}
}

func TestInconsistentSpeedsAreReportedOnce(t *testing.T) {
	b := connect(t)
	free := can.Frame{ID: idStatus, Length: 8, Data: [8]uint8{2}} // clutch 1 free
	for range 50 {
		b.send(speeds(turning(first, 2)))
		b.send(free)
	}
	b.read(100 * time.Millisecond)
	if n := strings.Count(b.log.String(), "clutch 1 is not"); n != 1 {
		t.Errorf("reported %d times, want once:\n%s", n, &b.log)
	}
}

func TestEndOfTheBusIsNoError(t *testing.T) {
	b := connect(t)
	b.send(speeds(turning(first, 2)))
	b.read(30 * time.Millisecond)
	b.file.Close()
	if err := b.result(); err != nil {
		t.Errorf("the other side closed: %v, want nil", err)
	}
}

func TestStopEndsAUnitWithoutAReader(t *testing.T) {
	b := connect(t)
	// The smallest buffer that the kernel allows holds a few frames; no one reads them.
	if err := syscall.SetsockoptInt(b.fd, syscall.SOL_SOCKET, syscall.SO_SNDBUF, 1); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		b.send(speeds(turning(first, 2)))
		time.Sleep(5 * time.Millisecond)
	}
	close(b.stop)
	if err := b.result(); err != nil {
		t.Error(err)
	}
}

// line is a bus that returns an error.
type line struct {
	packets chan []byte
	failure error // of reads when packets is closed
	full    error // of every write
	writes  chan struct{}
}

func (l *line) Read(b []byte) (int, error) {
	packet, ok := <-l.packets
	if !ok {
		return 0, l.failure
	}
	return copy(b, packet), nil
}

func (l *line) Write(b []byte) (int, error) {
	select {
	case l.writes <- struct{}{}:
	default:
	}
	return 0, l.full
}

func (l *line) Close() error { return nil }

func TestBusErrorIsReturned(t *testing.T) {
	for _, c := range []struct{ failure, want error }{
		{syscall.EIO, syscall.EIO},
		{syscall.ENETDOWN, unit.ErrDown},
		{io.EOF, nil}, {os.ErrClosed, nil}, {syscall.ECONNRESET, nil},
	} {
		l := &line{packets: make(chan []byte), failure: c.failure}
		close(l.packets)
		if err := unit.Run(powershiftType(t), l, io.Discard, nil); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("read fails with %v: Run = %v, want %v", c.failure, err, c.want)
		}
	}
}

func TestFullQueueDropsFramesAndTheUnitContinues(t *testing.T) {
	l := &line{packets: make(chan []byte), failure: io.EOF, full: syscall.ENOBUFS, writes: make(chan struct{})}
	var log journal
	end := make(chan error, 1)
	go func() { end <- unit.Run(powershiftType(t), l, &log, nil) }()
	packet, _ := can.Marshal(speeds(turning(first, 2)))
	l.packets <- packet
	for range 6 {
		select {
		case <-l.writes:
		case <-time.After(time.Minute):
			t.Fatal("the unit no longer sends")
		}
	}
	close(l.packets)
	if err := <-end; err != nil {
		t.Error(err)
	}
	if got := countsOf(t, log.String()); got.Dropped == 0 {
		t.Errorf("drops are not counted: %v", got)
	}
}

// stopped is a line on which the unit is stopped while it writes the first frame of a cycle.
type stopped struct {
	line
	once   sync.Once
	end    sync.Once
	stop   chan struct{}
	closed chan struct{}
	frames atomic.Int64
}

func (s *stopped) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.stop) })
	select {
	case <-s.closed:
		return 0, os.ErrClosed
	case <-time.After(10 * time.Millisecond):
		s.frames.Add(1)
		return len(b), nil
	}
}

func (s *stopped) Close() error {
	s.end.Do(func() { close(s.closed) })
	return nil
}

func TestStoppedUnitSendsTheFramesOfItsLastCycle(t *testing.T) {
	l := &stopped{line: line{packets: make(chan []byte, 1), failure: io.EOF}, stop: make(chan struct{}), closed: make(chan struct{})}
	packet, _ := can.Marshal(speeds(turning(first, 2)))
	l.packets <- packet
	var log journal
	if err := unit.Run(powershiftType(t), l, &log, l.stop); err != nil {
		t.Fatal(err)
	}
	if got, sent := countsOf(t, log.String()), l.frames.Load(); sent == 0 || got.Cycles*2 != sent {
		t.Errorf("%d frames sent, %+v: want two frames for each cycle", sent, got)
	}
}
