package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/sched/hostinfo"
	"lockstep/sched/journal"
)

// minTxQueue is the shortest transmit queue of a CAN card, frames, that holds the frames of a tick.
// A bus of 8 Mbit/s takes about a hundred frames in 5 ms; the kernel's default queue of 10
// drops the rest.
const minTxQueue = 100

// whyCAN is the reason for a CAN interface.
const whyCAN = "the control unit under test is connected to it"

// checkCAN checks the required interfaces with level Must and the other ones with level Info.
func (h *host) checkCAN() (list []Check) {
	for _, name := range h.req.Buses {
		list = append(list, h.checkInterface(name, Must)...)
	}
	for _, name := range h.CANInterfaces() {
		if !slices.Contains(h.req.Buses, name) {
			list = append(list, h.checkInterface(name, Info)...)
		}
	}

	if len(list) == 0 {
		c := Check{Name: "can", Level: Info, Wanted: "a CAN interface, if a bench names one", Why: whyCAN}
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
	switch without := can.BuiltWithout(string(h.Files), h.Release); {
	case err != nil && without != "":
		return []Check{c.wrong("no such interface, and no CAN in this kernel", without, Kernel)}
	case err != nil && strings.HasPrefix(name, "vcan"):
		add := fmt.Sprintf("sudo ip link add dev %s type vcan && sudo ip link set %s up", name, name)
		return []Check{c.wrong("no such interface", add, Now)}
	case err != nil:
		return []Check{c.wrong("no such interface",
			"plug the card in and load its driver: ip -br link; sudo dmesg | grep -i can", Now)}
	case kind != hostinfo.TypeCAN:
		return []Check{c.wrong("not a CAN interface (type "+kind+")", "ip -br link show type can", Restart)}
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
		return []Check{c.unreadable("the flags of the interface cannot be read")}
	case flags&isUp == 0:
		c = c.wrong("down", up, Now)
	case h.Text(dir+"/carrier") == "0":
		c = c.wrong("up, but not on the bus: bus off",
			"repair the wiring, the bitrate or the termination, then sudo ip link set "+name+" type can restart", Now)
	default:
		c = c.ok("up")
	}

	if !card {
		return []Check{c}
	}
	return append([]Check{c, h.checkQueue(name, level)}, h.checkRestart(name)...)
}

// checkRestart checks restart-ms over netlink; the files of another host do not have it.
func (h *host) checkRestart(name string) []Check {
	c := Check{
		Name: "restart " + name, Level: Info,
		Wanted: "restart-ms of 10 or more, or `recover: restart after 200 ms` in the bench",
		Why:    "after a short circuit the controller stays off the bus",
	}
	if h.operations.link == nil {
		return nil
	}
	switch link, err := h.operations.link(name); {
	case err != nil:
		return []Check{c.unreadable("restart-ms cannot be read: " + reason(err).Error())}
	case !link.Card:
		return nil // virtual interface
	case link.RestartMs > 0:
		return []Check{c.ok(fmt.Sprintf("restart-ms %d", link.RestartMs))}
	case link.Up: // -fix does not take an interface down
		command := fmt.Sprintf("sudo ip link set %s down && sudo ip link set %s up type can restart-ms 100", name, name)
		return []Check{c.wrong("restart-ms 0", command, Now)}
	}

	return []Check{h.wrongSetting(c, Setting{Kind: journal.RestartMs, File: "/sys/class/net/" + name}, "100", "restart-ms 0")}
}

func (h *host) checkQueue(name string, level Level) Check {
	if level == Must {
		level = Should
	}
	c := Check{
		Name: "queue " + name, Level: level,
		Wanted: fmt.Sprintf("txqueuelen %d or more", minTxQueue),
		Why:    "the kernel drops the frames of a tick that do not fit",
	}
	length, err := strconv.Atoi(h.Text("sys/class/net/" + name + "/tx_queue_len"))
	switch {
	case err != nil:
		return c.unreadable("the length of the queue cannot be read")
	case length < minTxQueue:
		c = h.addChange(c, fileSetting("sys/class/net/"+name+"/tx_queue_len"), strconv.Itoa(minTxQueue))
		command := fmt.Sprintf("sudo ip link set %s txqueuelen %d", name, minTxQueue)
		return c.wrong(fmt.Sprintf("txqueuelen %d", length), command, Now)
	}

	return c.ok(fmt.Sprintf("txqueuelen %d", length))
}
