package faults

import "time"

// What the bench receives.
const (
	pressure1 = 0x110
	pressure2 = 0x111
)

func unitSilent(a *trial) {
	s := a.run(plan{args: []string{"-for", "2s"}})
	s.bus.ticking(1)
	for range 40 {
		s.bus.send(pressure1, 0x3e8) // clutch 1: 10 bar
		s.bus.send(pressure2, 0)
		time.Sleep(2 * tick)
	}
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	_, safe := s.bus.parted(all)
	a.must(len(safe) == 0 && r.Clean && r.Ticks == 400, "%d safe frames, %d ticks, %s", len(safe), r.Ticks, r.Ended)
	if r.RxFrames != 80 || len(r.Silent) != 2 || r.Silent[0].For < 1 {
		a.giveUp("%d frames read, want 80; silent: %+v, want both messages, for 1.6 s", r.RxFrames, r.Silent)
	}
	a.must(r.Silent[0].Last > 0.3 && r.Silent[1].Last > 0.3, "silent: %+v; want from 0.4 s on", r.Silent)
	s.says("no valid TCU_Pressure_1 for ")
	s.says("last valid command kept")
}

func unitDeaf(a *trial) {
	s := a.run(plan{args: []string{"-for", "2s"}})
	s.bus.ticking(50)
	s.bus.mu.Lock() // and the reader waits for it
	time.Sleep(1300 * time.Millisecond)
	s.bus.mu.Unlock()
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	a.inTime(r.TxDropped > 0, "no frame was dropped")
	a.must(r.Ticks == 400 && r.TxFrames+r.TxLost+r.TxDropped-r.TxAgain == 800 && len(all) == int(r.TxFrames),
		"%d ticks; %d frames came, %d were sent, %d lost, %d dropped, %d of them tried again; want 800 in all", r.Ticks, len(all), r.TxFrames, r.TxLost, r.TxDropped, r.TxAgain)
	s.bus.counted(all, r)
	a.must(r.BusDown == 0 && r.BusErrors == 0, "bus down %d, errors %d", r.BusDown, r.BusErrors)
}

func busClosed(a *trial) {
	s := a.run(plan{args: []string{"-for", "1s"}})
	s.bus.ticking(50)
	s.bus.bus.Close()
	s.ends(0, "")
	r := s.read()
	a.must(r.Ticks == 200 && r.Clean && r.Allocs == 0, "%d ticks, %d allocations, %s; want 200, 0", r.Ticks, r.Allocs, r.Ended)
	a.must(r.BusDown > 0 && r.TxDropped > 0, "%d ticks found the bus down, %d frames were dropped", r.BusDown, r.TxDropped)
	s.says("bus errors")
}

func flood(a *trial) {
	s := a.run(plan{args: []string{"-for", "2s"}})
	s.bus.ticking(1)
	sent := 0
	for until := time.Now().Add(time.Second); time.Now().Before(until); sent++ {
		if !s.bus.send([]uint32{0x7ff, pressure1, 0x123, pressure2}[sent%4], 0) {
			break
		}
	}
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	a.Logf("%d frames sent, %d read, %d of them unknown; %d ticks missed; most in one tick %v", sent, r.RxFrames, r.RxUnknown, r.Missed, time.Duration(r.Tick.Max))
	a.must(r.Ticks == 400 && r.Allocs == 0 && r.MajorFaults == 0, "%d ticks, %d allocations; want 400, 0", r.Ticks, r.Allocs)
	a.must(sent > 1000 && int(r.RxFrames) >= sent-1 && int(r.RxFrames) <= sent+1 && r.RxUnknown >= r.RxFrames/2-1,
		"%d frames sent, %d read, %d unknown", sent, r.RxFrames, r.RxUnknown)
	s.bus.counted(all, r)
	a.inTime(r.Missed < 40, "%d ticks of 400 missed", r.Missed)
}
