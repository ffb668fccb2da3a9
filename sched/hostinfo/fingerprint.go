package hostinfo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Machine describes the hardware of a host and how it was booted. Unknown properties are empty, or
// 0 if 0 is impossible.
type Machine struct {
	Name       string    `json:"name"`
	ID         string    `json:"id"`        // hash of /etc/machine-id: identifies the installation
	Board      string    `json:"board"`     // vendor, product, version
	Firmware   string    `json:"firmware"`  // vendor, version, date
	Processor  string    `json:"processor"` // processor model
	Microcode  string    `json:"microcode"`
	Cores      int       `json:"cores"`
	CPUs       string    `json:"cpus"` // online: "0-3"
	MHz        int       `json:"mhz"`  // highest clock frequency
	MemoryKB   int64     `json:"memory_kb"`
	Kernel     string    `json:"kernel"` // release and version
	Realtime   bool      `json:"realtime"`
	Cmdline    string    `json:"cmdline"`
	Isolated   string    `json:"isolated"` // isolated CPUs
	Governor   string    `json:"governor"` // frequency governor of the loop's CPU
	Idle       string    `json:"idle"`     // driver of the idle states
	Clock      string    `json:"clock"`
	Hypervisor string    `json:"hypervisor"` // empty: none seen
	Container  string    `json:"container"`  // empty: none seen
	CAN        []CANCard `json:"can"`
}

// CANCard is an interface of type CAN.
type CANCard struct {
	Interface string `json:"interface"`
	Driver    string `json:"driver"` // empty: a virtual interface without a device
	Device    string `json:"device"` // bus address: "0000:05:00.0"
	ID        string `json:"id"`     // "PCI 10E8:8406"
	Queue     int    `json:"txqueuelen"`
	State     string `json:"state"` // up or down
}

// String describes the card, without its interface.
func (c CANCard) String() string {
	what := "virtual"
	if c.Driver != "" {
		what = fmt.Sprintf("%s, %s at %s", c.Driver, c.ID, c.Device)
	}
	return fmt.Sprintf("%s, txqueuelen %d, %s", what, c.Queue, c.State)
}

// Machine returns the description of the host.
func (h *Host) Machine() Machine {
	processor := h.Fields("proc/cpuinfo")
	cpu := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", h.CPU)
	memory, _ := strconv.ParseInt(strings.TrimSuffix(h.Fields("proc/meminfo")["MemTotal"], " kB"), 10, 64)
	kHz, _ := strconv.Atoi(h.Text(cpu + "cpufreq/cpuinfo_max_freq"))
	model := processor["model name"]
	if model == "" {
		model = strings.TrimSpace(processor["Model"] + " " + runtime.GOARCH)
	}
	b := Machine{
		Name:      h.Text("proc/sys/kernel/hostname"),
		Board:     h.joinLines("sys/class/dmi/id/", "board_vendor", "board_name", "board_version"),
		Firmware:  h.joinLines("sys/class/dmi/id/", "bios_vendor", "bios_version", "bios_date"),
		Processor: model, Microcode: processor["microcode"],
		Cores: h.countCores(), CPUs: FormatCPUs(h.Online), MHz: kHz / 1000, MemoryKB: memory,
		Kernel:   strings.TrimSpace(h.Release + " " + h.Text("proc/sys/kernel/version")),
		Realtime: h.Realtime, Cmdline: h.Text("proc/cmdline"), Isolated: FormatCPUs(h.Isolated),
		Governor: h.Text(cpu + "cpufreq/scaling_governor"), Idle: h.Text("sys/devices/system/cpu/cpuidle/current_driver"),
		Clock:      h.Text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Hypervisor: h.Hypervisor, Container: h.Container, CAN: []CANCard{},
	}
	if b.Board == "" { // ARM
		b.Board = strings.Trim(h.Text("proc/device-tree/model"), "\x00")
	}
	if id := h.Text("etc/machine-id"); id != "" { // machine-id(5): must not be shown itself
		sum := sha256.Sum256([]byte("lockstep certificate " + id))
		b.ID = hex.EncodeToString(sum[:8])
	}

	for _, name := range h.CANInterfaces() {
		b.CAN = append(b.CAN, h.canCard(name))
	}
	return b
}

// joinLines returns the first lines of files, joined by spaces.
func (h *Host) joinLines(dir string, names ...string) string {
	var list []string
	for _, name := range names {
		if text := h.Text(dir + name); text != "" {
			list = append(list, text)
		}
	}

	return strings.Join(list, " ")
}

// countCores counts the cores of the online CPUs.
func (h *Host) countCores() int {
	var list []string
	for _, cpu := range h.Online {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", cpu)
		siblings := h.Text(dir + "thread_siblings_list")
		if siblings == "" {
			siblings = strconv.Itoa(cpu)
		}
		list = append(list, siblings)
	}

	slices.Sort(list)
	return len(slices.Compact(list))
}

// canCard describes a CAN interface.
func (h *Host) canCard(name string) CANCard {
	dir := "sys/class/net/" + name
	c := CANCard{Interface: name, State: "down"}
	if flags, err := strconv.ParseUint(h.Text(dir+"/flags"), 0, 32); err == nil && flags&1 != 0 { // IFF_UP
		c.State = "up"
	}
	c.Queue, _ = strconv.Atoi(h.Text(dir + "/tx_queue_len"))
	if path, err := filepath.EvalSymlinks(h.Path(dir + "/device/driver")); err == nil {
		c.Driver = filepath.Base(path)
	}
	if path, err := filepath.EvalSymlinks(h.Path(dir + "/device")); err == nil {
		c.Device = filepath.Base(path)
	}
	for line := range strings.Lines(h.Text(dir + "/device/uevent")) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "PCI_ID":
			c.ID = "PCI " + value
		case "PRODUCT":
			c.ID = "USB " + value
		case "OF_NAME":
			c.ID = value
		}
	}

	return c
}

// StolenTicks returns the time since boot for which the hypervisor kept a CPU of the host below root
// from running, in ticks of 10 ms, proc_stat(5); 0 if unknown.
func StolenTicks(root string, cpu int) int64 {
	text, _ := os.ReadFile(filepath.Join(root, "proc/stat"))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 8 && f[0] == fmt.Sprintf("cpu%d", cpu) {
			n, _ := strconv.ParseInt(f[8], 10, 64)
			return n
		}
	}

	return 0
}
