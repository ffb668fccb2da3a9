package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/sched/hostinfo"
)

// minTxQueue is the shortest transmit queue of a CAN card, frames, that holds
// what a tick sends: a bus of 8 Mbit/s takes about a hundred frames in 5 ms, and
// the kernel's default of 10 drops the rest.
const minTxQueue = 100

// whyCAN is what an interface is for.
const whyCAN = "the unit under test is at its other end"

// checkCAN checks the interfaces that were asked for and mentions the others.
func (h *host) checkCAN() (list []Check) {
	for _, name := range h.ask.Buses {
		list = append(list, h.checkInterface(name, Must)...)
	}
	for _, name := range h.CANInterfaces() {
		if !slices.Contains(h.ask.Buses, name) {
			list = append(list, h.checkInterface(name, Info)...)
		}
	}

	if len(list) == 0 {
		c := Check{Name: "can", Level: Info, Wanted: "a CAN interface, where a bench names one", Why: whyCAN}
		list = append(list, c.ok("no interface"))
	}

	return list
}

func (h *host) checkInterface(name string, level Level) []Check {
	c := Check{
		Name: "can " + name, Level: level,
		Wanted: "up, and on the bus",
		Why:    whyCAN,
	}
	dir := "sys/class/net/" + name
	kind, err := h.ReadFile(dir + "/type")
	switch {
	case err != nil && strings.HasPrefix(name, "vcan"):
		add := fmt.Sprintf("sudo ip link add dev %s type vcan && sudo ip link set %s up", name, name)
		return []Check{c.wrong("there is none", add, Now)}
	case err != nil:
		return []Check{c.wrong("there is none",
			"plug the card in and load its driver: ip -br link; sudo dmesg | grep -i can", Now)}
	case kind != hostinfo.TypeCAN:
		return []Check{c.wrong("it is no CAN interface (type "+kind+")", "ip -br link show type can", Restart)}
	}

	flags, err := strconv.ParseUint(h.Text(dir+"/flags"), 0, 32)
	card := h.Exists(dir + "/device")
	up := "sudo ip link set " + name + " up"
	if card {
		up += " type can bitrate 500000 restart-ms 100"
	}
	const isUp = 1 // IFF_UP
	switch {
	case err != nil:
		return []Check{c.hidden("its flags cannot be read")}
	case flags&isUp == 0:
		c = c.wrong("down", up, Now)
	case h.Text(dir+"/carrier") == "0":
		c = c.wrong("up, but not on the bus: bus off",
			"mend the wiring, the bitrate or the termination, then sudo ip link set "+name+" type can restart", Now)
	default:
		c = c.ok("up")
	}

	if !card {
		return []Check{c}
	}
	return append([]Check{c, h.checkQueue(name, level)}, h.checkRestart(name)...)
}

// checkRestart asks the kernel, which tells it over netlink alone: nothing of the
// files of another host.
func (h *host) checkRestart(name string) []Check {
	c := Check{
		Name: "restart " + name, Level: Info,
		Wanted: "restart-ms of 10 or more, or `recover: restart after 200 ms` in the bench",
		Why:    "after a short circuit the controller stays off the bus",
	}
	if h.hands.link == nil {
		return nil
	}
	switch link, err := h.hands.link(name); {
	case err != nil:
		return []Check{c.hidden("it cannot be asked for: " + reason(err).Error())}
	case !link.Card:
		return nil // its driver knows no bus
	case link.RestartMs > 0:
		return []Check{c.ok(fmt.Sprintf("restart-ms %d", link.RestartMs))}
	case link.Up: // -fix takes no interface off its bus
		command := fmt.Sprintf("sudo ip link set %s down && sudo ip link set %s up type can restart-ms 100", name, name)
		return []Check{c.wrong("restart-ms 0", command, Now)}
	}

	return []Check{h.set(c, Setting{Kind: RestartMs, File: "/sys/class/net/" + name}, "100", "restart-ms 0")}
}

func (h *host) checkQueue(name string, level Level) Check {
	if level == Must {
		level = Should
	}
	c := Check{
		Name: "queue " + name, Level: level,
		Wanted: fmt.Sprintf("txqueuelen %d or more", minTxQueue),
		Why:    "what a tick sends beyond it is dropped before the bus",
	}
	length, err := strconv.Atoi(h.Text("sys/class/net/" + name + "/tx_queue_len"))
	switch {
	case err != nil:
		return c.hidden("its length cannot be read")
	case length < minTxQueue:
		c = h.to(c, value("sys/class/net/"+name+"/tx_queue_len"), strconv.Itoa(minTxQueue))
		command := fmt.Sprintf("sudo ip link set %s txqueuelen %d", name, minTxQueue)
		return c.wrong(fmt.Sprintf("txqueuelen %d", length), command, Now)
	}

	return c.ok(fmt.Sprintf("txqueuelen %d", length))
}
