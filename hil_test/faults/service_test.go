package faults

import (
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// manager is a service manager: it keeps what a service says.
type manager struct {
	a    *trial
	name string
	mu   sync.Mutex
	got  []notice
}

type notice struct {
	at   time.Time
	text string
}

func manage(a *trial) *manager {
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

// heard are the messages that begin with a word.
func (m *manager) heard(word string) (list []notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.got {
		if strings.HasPrefix(n.text, word) {
			list = append(list, n)
		}
	}
	return list
}

// hears waits for n messages that begin with a word.
func (m *manager) hears(word string, n int) []notice {
	m.a.Helper()
	for until := time.Now().Add(patience); len(m.heard(word)) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			m.a.Fatalf("no %d messages %s within %v", n, word, patience)
		}
	}
	return m.heard(word)
}

// ready disturbs the run after 50 ticks: from then on there must be 100.
func ready(a *trial) {
	m := manage(a)
	s := a.run(plan{env: m.env()})
	s.bus.ticking(50)
	a.halt(a.target(), 100*time.Millisecond)
	first := m.hears("READY=1", 1)[0]
	s.bus.ticking(20)
	longest, after := pause(s.bus.all())
	clean := 0
	for _, f := range of(s.bus.all(), speeds)[after:] {
		if f.at.Before(first.at) {
			clean++
		}
	}
	a.inTime(longest > 75*time.Millisecond && clean >= 95 && clean <= 150, "READY=1 %d ticks after a gap of %v; want 100 to 140, 100 ms", clean, longest)
	a.must(strings.HasPrefix(first.text, "READY=1\nSTATUS=ticking, "), "it says %q", first.text)
	a.signal(s.cmd.Process.Pid, 15)
	s.ends(0, "")
	a.must(len(m.heard("READY=1")) == 1, "READY=1 came %d times", len(m.heard("READY=1")))
	a.must(m.hears("STOPPING=1", 1)[0].text == "STOPPING=1\nSTATUS=stopped by terminated", "it says %q", m.heard("STOPPING=1")[0].text)
}

func heartbeat(a *trial) {
	m := manage(a)
	s := a.run(plan{env: m.env()})
	m.hears("WATCHDOG=1", 3)
	a.signal(a.target(), 19)
	time.Sleep(300 * time.Millisecond) // what was under way is through
	before := len(m.heard("WATCHDOG=1"))
	time.Sleep(time.Second)
	during := len(m.heard("WATCHDOG=1")) - before
	a.signal(a.target(), 18)
	m.hears("WATCHDOG=1", before+during+3)
	a.inTime(during == 0, "WATCHDOG=1 came %d times while no tick came", during)
	s.ctrlC()
	s.ends(0, "")
}
