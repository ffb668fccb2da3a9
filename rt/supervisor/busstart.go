package supervisor

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt/bench"
	"lockstep/sched"
)

// await waits until the run's interfaces are there and up, as they are some time after
// a boot, at most as long as was asked. What is amiss then is said by who opens them.
func (r *Session) await() {
	if r.Options.Wait == 0 {
		return
	}
	links, err := can.OpenLinks()
	if err != nil {
		return
	}
	defer links.Close()
	until := time.Now().Add(r.Options.Wait)
	for _, bus := range r.Bench.Buses {
		name, told := bus.Interface.Text, false
		for bench.IsHostInterface(name) && time.Now().Before(until) {
			if link, err := links.Ask(name); err == nil && link.Up {
				break
			}
			if !told {
				fmt.Fprintf(r.Options.Out, "bus %s: waiting for %s, %v at most\n", bus.Name.Text, name, r.Options.Wait)
			}
			told = true
			time.Sleep(look)
		}
	}
}

// refuse says why a run cannot begin on the buses as they are.
func (s *busStates) refuse() error {
	for _, w := range s.lines {
		if name := w.bus.Interface.Text; w.errors.State == can.Off {
			return fmt.Errorf("bus %s: %s is bus-off: mend the wiring, the bit rate or the termination, then ip link set %s down && ip link set %s up%s restart-ms 100",
				w.bus.Name.Text, name, name, name, upRate(w.bus))
		}
	}
	return nil
}

// upRate is what the command that takes the bus's interface up needs besides.
func upRate(bus *bench.Bus) string {
	if bus.BitRate == 0 {
		return " type can bitrate 500000"
	}
	return fmt.Sprintf(" type can bitrate %.0f", bus.BitRate)
}

// notes are what is odd about the buses before the first tick, one line each.
func (s *busStates) notes() (list []string) {
	for _, w := range s.lines {
		name := w.bus.Name.Text
		if w.errors.State > can.Active {
			list = append(list, fmt.Sprintf("bus %s: %s is %s: is another node there, and at the same bit rate?", name, w.bus.Interface.Text, w.detail()))
		}
		if w.bus.BitRate > 0 && w.link.BitRate > 0 && int(w.bus.BitRate) != w.link.BitRate {
			list = append(list, fmt.Sprintf("bus %s: %s runs at %g kbit/s, the bench file says %g kbit/s: ip link set %s down && ip link set %s up%s",
				name, w.bus.Interface.Text, float64(w.link.BitRate)/1e3, w.bus.BitRate/1e3, w.bus.Interface.Text, w.bus.Interface.Text, upRate(w.bus)))
		}
	}
	return list
}

// missing is what the host refuses of what the buses' rules need.
func (s *busStates) missing() (list []sched.Missing) {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0 {
		return nil
	}
	for _, w := range s.lines {
		if w.bus.RestartNs > 0 && w.link.Card {
			list = append(list, sched.Missing{
				What: fmt.Sprintf("no right to restart %s (recover of bus %s): that needs CAP_NET_ADMIN", w.bus.Interface.Text, w.bus.Name.Text),
				Help: fmt.Sprintf("add cap_net_admin to the capabilities of the command, or leave it to the driver: recover: wait, and ip link set %s up%s restart-ms %d",
					w.bus.Interface.Text, upRate(w.bus), w.bus.RestartNs/1e6),
			})
		}
	}
	return list
}
