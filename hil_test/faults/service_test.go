package faults

import (
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// manager is a service manager that records the notifications of a service: sd_notify(3).
type manager struct {
	a    *attempt
	name string // path of the socket
	mu   sync.Mutex
	got  []notice
}

type notice struct {
	at   time.Time
	text string
}

func newManager(a *attempt) *manager {
	a.Helper()
	m := &manager{a: a, name: filepath.Join(a.dir, "notify")}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.name, Net: "unixgram"})
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() { socket.Close() })
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := socket.Read(b)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.got = append(m.got, notice{time.Now(), string(b[:n])})
			m.mu.Unlock()
		}
	}()
	return m
}

func (m *manager) env() []string {
	return []string{"NOTIFY_SOCKET=" + m.name, "WATCHDOG_USEC=300000"}
}

// received returns the notifications that begin with a prefix.
func (m *manager) received(prefix string) (list []notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.got {
		if strings.HasPrefix(n.text, prefix) {
			list = append(list, n)
		}
	}
	return list
}

// await waits for n notifications that begin with a prefix.
func (m *manager) await(prefix string, n int) []notice {
	m.a.Helper()
	for until := time.Now().Add(timeout); len(m.received(prefix)) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			m.a.Fatalf("%d notifications %s within %v, want %d", len(m.received(prefix)), prefix, timeout, n)
		}
	}
	return m.received(prefix)
}

// ready stops the target after 50 ticks. READY=1 must follow 100 ticks after that.
func ready(a *attempt) {
	m := newManager(a)
	s := a.run(plan{env: m.env()})
	s.bus.ticking(50)
	a.halt(a.target(), 100*time.Millisecond)
	first := m.await("READY=1", 1)[0]
	s.bus.ticking(20)
	longest, after := pause(s.bus.all())
	clean := 0
	for _, f := range of(s.bus.all(), speeds)[after:] {
		if f.at.Before(first.at) {
			clean++
		}
	}
	a.inTime(longest > 75*time.Millisecond && clean >= 95 && clean <= 150, "READY=1 %d ticks after a gap of %v; want 100 to 140, 100 ms", clean, longest)
	a.must(strings.HasPrefix(first.text, "READY=1\nSTATUS=ticking, "), "the notification is %q", first.text)
	a.signal(s.cmd.Process.Pid, 15)
	s.ends(0, "")
	a.must(len(m.received("READY=1")) == 1, "READY=1 came %d times", len(m.received("READY=1")))
	a.must(m.await("STOPPING=1", 1)[0].text == "STOPPING=1\nSTATUS=stopped by terminated", "the notification is %q", m.received("STOPPING=1")[0].text)
}

func heartbeat(a *attempt) {
	m := newManager(a)
	s := a.run(plan{env: m.env()})
	m.await("WATCHDOG=1", 3)
	a.signal(a.target(), 19)
	time.Sleep(300 * time.Millisecond) // for notifications on their way
	before := len(m.received("WATCHDOG=1"))
	time.Sleep(time.Second)
	during := len(m.received("WATCHDOG=1")) - before
	a.signal(a.target(), 18)
	m.await("WATCHDOG=1", before+during+3)
	a.inTime(during == 0, "WATCHDOG=1 came %d times while the target was stopped", during)
	s.ctrlC()
	s.ends(0, "")
}
