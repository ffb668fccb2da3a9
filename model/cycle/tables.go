package cycle

import (
	"bytes"
	"embed"
	"fmt"
	"strconv"
	"time"

	"lockstep/model/units"
)

// data holds the speeds of the cycles that regulations list second by second: lines of whole numbers, and
// comment lines that begin with '#'.
//
//go:embed data
var data embed.FS

const second = int64(time.Second)

// table is an embedded cycle: the speeds of a file, or operations.
type table struct {
	Cycle
	file       string      // file of speeds at 0, 1, 2, ... s; "": operations
	tenths     float64     // a tenth of the unit of the file, m/s
	again      int         // seconds from the start of the file that follow its end, after the pause; 0: none
	pause      int64       // standstill before them, s
	operations []operation // of the cycle
}

// end is the end of a phase.
type end struct {
	name string
	at   int64 // s
}

// soak is the name of a phase with the engine off.
const soak = "soak"

// operation is a straight line of speed to its end.
type operation struct {
	end   int64   // time of its end, s
	speed float64 // speed at its end, km/h
}

const (
	tenthKmh = 0.1 / 3.6         // m/s
	tenthMph = 0.1 * 0.44704     // m/s; the mile is 1609.344 m
	twoKmh   = 2 / 3.6           // m/s
	twoMph   = 2 * 0.44704       // m/s
	upTo2s   = 2*time.Second - 1 // "for less than 2 seconds"
)

// wltp, epa and ece are the tolerances of the three families of regulations.
//
// The same paragraph of UN R154 limits two figures of SAE J2951 (2.6.8.3.1.3): IWR from -2 % to +4 %, and RMSSE below
// 1.3 km/h. They are stated and not judged. 40 CFR 86.115-78(b) also accepts speeds below the band at the largest
// available power: here they are violations, as a vehicle that cannot follow must not pass unseen.
var (
	wltp = Band{Speed: twoKmh, Time: time.Second, Longest: time.Second, Most: 10,
		Source: "UN R154, Annex B6, 2.6.8.3.1: 2 km/h within 1 s; ten deviations of at most 1 s"}
	epa = Band{Speed: twoMph, Time: time.Second, Longest: upTo2s,
		Source: "40 CFR 86.115-78(b), 600.109-08 and 1066.425(b): 2 mph within 1 s; deviations of less than 2 s"}
	ece = Band{Speed: twoKmh, Time: time.Second, Longest: time.Second / 2,
		Source: "UN R83, Annex 4a: 2 km/h within 1 s; deviations of at most 0.5 s"}
)

// embedded lists the embedded cycles.
var embedded = []table{
	{
		Cycle: Cycle{Name: "wltc-3b", Title: "WLTC class 3b", Band: wltp, Unit: units.Want("km/h"),
			Source: "UN R154, Annex B1, Tables A1/7, A1/9, A1/11, A1/12; UN GTR 15, Annex 1",
			Phases: phases(end{"low", 589}, end{"medium", 1022}, end{"high", 1477}, end{"extra high", 1800})},
		file: "wltc-3b.txt", tenths: tenthKmh,
	},
	{
		Cycle: Cycle{Name: "ftp-75", Title: "EPA Federal Test Procedure, with a soak of 10 min", Band: epa, Unit: units.Want("mph"),
			Source: "40 CFR 86, Appendix I(a); 40 CFR 86.135: phases of 505 s and 864 s, soak, 505 s",
			Phases: phases(end{"cold transient", 505}, end{"cold stabilised", 1369}, end{soak, 1969}, end{"hot transient", 2474})},
		file: "udds.txt", tenths: tenthMph, pause: 600, again: 505,
	},
	{
		Cycle: Cycle{Name: "nedc", Title: "New European Driving Cycle", Band: ece, Unit: units.Want("km/h"),
			Source: "UN R83, Annex 4a, Tables 1 and 2: operations with manual gearbox",
			Phases: phases(end{"urban 1", 195}, end{"urban 2", 390}, end{"urban 3", 585}, end{"urban 4", 780}, end{"extra-urban", 1180})},
		operations: join(urban, urban, urban, urban, extraUrban),
	},
	{
		Cycle: Cycle{Name: "hwfet", Title: "EPA Highway Fuel Economy Test", Band: epa, Unit: units.Want("mph"),
			Source: "40 CFR 600, Appendix I", Phases: phases(end{"highway", 765})},
		file: "hwfet.txt", tenths: tenthMph,
	},
}

// urban and extraUrban are the operations of UN R83, Annex 4a, Tables 1 and 2.
var (
	urban = []operation{
		{11, 0}, {15, 15}, {23, 15}, {25, 10}, {28, 0},
		{49, 0}, {54, 15}, {56, 15}, {61, 32}, {85, 32}, {93, 10}, {96, 0},
		{117, 0}, {122, 15}, {124, 15}, {133, 35}, {135, 35}, {143, 50}, {155, 50}, {163, 35}, {176, 35}, {178, 35},
		{185, 10}, {188, 0}, {195, 0},
	}
	extraUrban = []operation{
		{20, 0}, {25, 15}, {27, 15}, {36, 35}, {38, 35}, {46, 50}, {48, 50}, {61, 70}, {111, 70}, {119, 50},
		{188, 50}, {201, 70}, {251, 70}, {286, 100}, {316, 100}, {336, 120}, {346, 120}, {362, 80}, {370, 50},
		{380, 0}, {400, 0},
	}
)

// join returns the operations of several parts of a cycle, one after the other.
func join(parts ...[]operation) (list []operation) {
	var begin int64
	for _, part := range parts {
		for _, o := range part {
			list = append(list, operation{begin + o.end, o.speed})
		}
		begin += part[len(part)-1].end
	}
	return list
}

// phases makes phases from their names and ends.
func phases(ends ...end) (list []Phase) {
	var begin int64
	for _, e := range ends {
		list = append(list, Phase{Name: e.name, Begin: begin, End: e.at * second, Parked: e.name == soak})
		begin = e.at * second
	}
	return list
}

// cycle returns the cycle of a table.
func (e *table) cycle() (*Cycle, error) {
	c := e.Cycle
	add := func(at int64, v float64) {
		c.Target.At, c.Target.Value = append(c.Target.At, at*second), append(c.Target.Value, v)
	}
	if e.file == "" {
		add(0, 0)
		for _, o := range e.operations {
			add(o.end, o.speed/3.6)
		}
		return &c, nil
	}

	speeds, err := readTenths(e.file, e.tenths)
	if err != nil {
		return nil, err
	}
	for i, v := range speeds {
		add(int64(i), v)
	}
	if begin := int64(len(speeds)-1) + e.pause; e.again > 0 {
		for i, v := range speeds[:e.again+1] {
			add(begin+int64(i), v)
		}
	}
	return &c, nil
}

// readTenths reads an embedded file of speeds in tenths of a unit.
func readTenths(file string, tenths float64) (speeds []float64, err error) {
	text, err := data.ReadFile("data/" + file)
	if err != nil {
		return nil, fmt.Errorf("cycle: %w", err)
	}
	for line := range bytes.Lines(text) {
		if line[0] == '#' {
			continue
		}
		for _, field := range bytes.Fields(line) {
			n, err := strconv.Atoi(string(field))
			if err != nil {
				return nil, fmt.Errorf("cycle: %s: %w", file, err)
			}
			speeds = append(speeds, float64(n)*tenths)
		}
	}
	return speeds, nil
}
