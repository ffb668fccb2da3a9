package diagnosis

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/inputfile"
	"lockstep/io/uds"
	"lockstep/model/units"
)

// Job is work for a Station: a procedure with one unit, a request to all units, or for a group of SAE J1939.
type Job struct {
	Label string                                // the command: "read oil_temperature"
	Do    func(t *uds.Tester) ([]string, error) // the procedure; its lines are the answer for people
	All   []byte                                // request to all units at the functional identifier; nil: Do or Group is the work
	Group *GroupRequest                         // request to a unit on SAE J1939; nil: Do or All is the work
	Done  func(Outcome)                         // called at the end; nil: it is not
	Item  *Item                                 // of an agenda; nil: of no scenario
}

// Outcome is how a job ended.
type Outcome struct {
	Label     string
	Item      *Item    // of an agenda; nil: of no scenario
	Unasked   bool     // an answer of the unit without a request
	Lines     []string // the answer for people
	Err       error
	Exchanges []uds.Exchange // requests with their answers
	Start     int64          // ns, on the clock of the station
	End       int64
}

// Command is one of the commands of `lockstep uds`.
type Command struct {
	Name, Arguments, About string
	parse                  func(s *Spec, args []string, virtual bool) (Job, error)
}

// Commands are the commands in the order of the usage.
var Commands = []Command{
	{"dtc", "[STATUS|CODE|supported|count]", "read trouble codes: those with a status bit, one with its freeze frames, all that the unit knows, or how many there are", parseDTC},
	{"clear", "[CODE|all]", "clear trouble codes", parseClear},
	{"read", "IDENTIFIER...", "read data by identifier", parseRead},
	{"write", "IDENTIFIER VALUE", "write data by identifier", parseWrite},
	{"control", "IDENTIFIER VALUE|return|default|freeze", "take over an input or output of the unit", parseControl},
	{"session", "default|programming|extended|NAME", "enter a session; a bench keeps it alive", parseSession},
	{"unlock", "LEVEL", "unlock a security level with the program of the diagnosis file", parseUnlock},
	{"reset", "[hard|key|soft]", "reset the unit", parseReset},
	{"routine", "ROUTINE [start|stop|result] [BYTES]", "start or stop a routine, or read its results", parseRoutine},
	{"communication", "on|off", "let the unit send and receive its own messages, or not", parseCommunication},
	{"setting", "on|off", "let the unit update its trouble codes, or not", parseSetting},
	{"present", "", "say that a tester is present", parsePresent},
	{"flash", "FILE", "write an image (S-records or Intel HEX) into the unit", parseFlash},
	{"obd", "MODE [PARAMETER]", "ask all units by OBD: modes 1 2 3 4 7 9 0A", parseOBD},
	{"raw", "BYTES", "send a request as bytes", parseRaw},
	{"dm", "1|2|3|4|11", "SAE J1939: read active (1) or previously active codes (2) or freeze frames (4); clear previously active (3) or active codes (11)", parseDM},
}

// ParseCommand returns the job of a command in words. In virtual time a program for keys runs while the time stands.
func (s *Spec) ParseCommand(words []string, virtual bool) (Job, error) {
	var names []string
	for _, c := range Commands {
		if (c.Name == "dm") != (s.Node != nil) {
			continue
		}
		if names = append(names, c.Name); len(words) > 0 && c.Name == words[0] {
			j, err := c.parse(s, words[1:], virtual)
			if err != nil {
				return Job{}, fmt.Errorf("%s: %w", c.Name, err)
			}
			j.Label = strings.Join(words, " ")
			return j, nil
		}
	}
	if len(words) == 0 {
		return Job{}, fmt.Errorf("the command is missing: %s", strings.Join(names, ", "))
	}
	if slices.ContainsFunc(Commands, func(c Command) bool { return c.Name == words[0] }) {
		return Job{}, fmt.Errorf("%s: %s describes a unit %s; its commands are %s", words[0], s.File,
			map[bool]string{true: "on SAE J1939", false: "with UDS"}[s.Node != nil], strings.Join(names, ", "))
	}
	return Job{}, fmt.Errorf("there is no command %.60q%s; known are %s", words[0], units.Meant(words[0], names), strings.Join(names, ", "))
}

// count refuses a wrong number of arguments.
func count(args []string, lo, hi int, form string) error {
	if len(args) < lo || hi >= 0 && len(args) > hi {
		return fmt.Errorf("expected %s", form)
	}
	return nil
}

// done is the job of a procedure without an answer.
func done(text string, do func(t *uds.Tester) error) (Job, error) {
	return Job{Do: func(t *uds.Tester) ([]string, error) { return []string{text}, do(t) }}, nil
}

// anyStatus are the bits of a code that has failed since it was cleared.
const anyStatus = uds.TestFailed | uds.Pending | uds.Confirmed | uds.FailedSinceClear | uds.TestFailedThisCycle | uds.WarningIndicator

func parseDTC(s *Spec, args []string, _ bool) (Job, error) {
	if err := count(args, 0, 1, "dtc [STATUS|CODE|supported|count]"); err != nil {
		return Job{}, err
	}
	read := func(t *uds.Tester) ([]uds.DTC, error) { return t.DTCs(anyStatus) }
	if len(args) == 1 {
		mask, isStatus := uds.ParseStatus(args[0])
		switch {
		case isStatus:
			read = func(t *uds.Tester) ([]uds.DTC, error) { return t.DTCs(mask) }
		case args[0] == "supported":
			read = (*uds.Tester).SupportedDTCs
		case args[0] == "count":
			return Job{Do: func(t *uds.Tester) ([]string, error) {
				n, err := t.CountDTCs(anyStatus)
				return []string{fmt.Sprintf("%d trouble codes", n)}, err
			}}, nil
		default:
			code, err := s.FindCode(args[0])
			if err != nil {
				return Job{}, fmt.Errorf("%w; or a status: %s", err, strings.Join(uds.StatusNames[:], ", "))
			}
			return Job{Do: func(t *uds.Tester) ([]string, error) { return s.describeCode(t, code) }}, nil
		}
	}
	return Job{Do: func(t *uds.Tester) (lines []string, err error) {
		list, err := read(t)
		for _, d := range list {
			lines = append(lines, fmt.Sprintf("%s: %s (0x%02X)", s.NameCode(d.Code), d.Status, uint8(d.Status)))
		}
		if lines == nil && err == nil {
			lines = []string{"no trouble codes"}
		}
		return lines, err
	}}, nil
}

// describeCode reads freeze frames and extended data of a trouble code. A unit without one of the reports refuses it.
func (s *Spec) describeCode(t *uds.Tester, code uint32) ([]string, error) {
	d, records, err := t.Snapshots(code, s.size)
	var refused *uds.Negative
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	e, extended, err2 := t.Extended(code)
	if err2 != nil && (err != nil || !errors.As(err2, &refused)) {
		return nil, err2
	}
	if err != nil {
		d = e
	}
	lines := []string{fmt.Sprintf("%s: %s (0x%02X)", s.NameCode(code), d.Status, uint8(d.Status))}
	for _, r := range records {
		for _, v := range r.Values {
			_, values, _ := s.FindValues(fmt.Sprintf("0x%04X", v.ID))
			text, err := s.format(v.ID, values, v.Data)
			if err != nil {
				return nil, err
			}
			lines = append(lines, fmt.Sprintf("freeze frame %d: %s", r.Number, strings.Join(text, ", ")))
		}
		if r.Rest != nil {
			lines = append(lines, fmt.Sprintf("freeze frame %d: %s", r.Number, uds.Bytes(r.Rest)))
		}
	}
	if len(extended) > 0 {
		lines = append(lines, "extended data: "+uds.Bytes(extended))
	}
	return lines, nil
}

func parseClear(s *Spec, args []string, _ bool) (Job, error) {
	if err := count(args, 0, 1, "clear [CODE|all]"); err != nil {
		return Job{}, err
	}
	group := uint32(uds.AllDTCs)
	if len(args) == 1 && args[0] != "all" {
		var err error
		if group, err = s.FindCode(args[0]); err != nil {
			return Job{}, err
		}
	}
	return done("cleared", func(t *uds.Tester) error { return t.Clear(group) })
}

func parseRead(s *Spec, args []string, _ bool) (Job, error) {
	if err := count(args, 1, -1, "read IDENTIFIER..."); err != nil {
		return Job{}, err
	}
	for _, a := range args {
		if _, _, err := s.FindValues(a); err != nil {
			return Job{}, err
		}
	}
	return Job{Do: func(t *uds.Tester) (lines []string, err error) {
		for _, a := range args {
			id, values, _ := s.FindValues(a)
			data, err := t.ReadData(id)
			if err != nil {
				return lines, err
			}
			text, err := s.format(id, values, data)
			if err != nil {
				return lines, err
			}
			lines = append(lines, text...)
		}
		return lines, nil
	}}, nil
}

// encode returns the bytes of a text for an identifier.
func (s *Spec) encode(name, text string) (id uint16, data []byte, err error) {
	id, values, err := s.FindValues(name)
	switch {
	case err != nil:
		return 0, nil, err
	case len(values) == 1 && values[0].From == 0:
		data, err = values[0].Encode(text)
	case len(values) > 0:
		data, err = ParseBytes(text)
		if err != nil {
			err = fmt.Errorf("0x%04X has several values: %w", id, err)
		}
	default:
		data, err = ParseBytes(text)
	}
	return id, data, err
}

func parseWrite(s *Spec, args []string, _ bool) (Job, error) {
	if err := count(args, 2, -1, "write IDENTIFIER VALUE"); err != nil {
		return Job{}, err
	}
	id, data, err := s.encode(args[0], strings.Join(args[1:], " "))
	if err != nil {
		return Job{}, err
	}
	return done("written", func(t *uds.Tester) error { return t.WriteData(id, data) })
}

func parseControl(s *Spec, args []string, _ bool) (Job, error) {
	if err := count(args, 2, -1, "control IDENTIFIER VALUE|return|default|freeze"); err != nil {
		return Job{}, err
	}
	id, values, err := s.FindValues(args[0])
	if err != nil {
		return Job{}, err
	}
	how, data := slices.Index([]string{"return", "default", "freeze"}, args[1]), []byte(nil)
	if how < 0 {
		how = 3
		if _, data, err = s.encode(args[0], strings.Join(args[1:], " ")); err != nil {
			return Job{}, err
		}
	}
	return Job{Do: func(t *uds.Tester) ([]string, error) {
		state, err := t.Control(id, byte(how), data)
		if err != nil || len(state) == 0 {
			return []string{"done"}, err
		}
		return s.format(id, values, state)
	}}, nil
}

func parseSession(s *Spec, args []string, _ bool) (Job, error) {
	if err := count(args, 1, 1, "session NAME"); err != nil {
		return Job{}, err
	}
	id, err := find(s.Sessions, args[0], "session")
	if err == nil && id > 0x7F { // the bit 0x80 would suppress the answer
		err = fmt.Errorf("session 0x%X is not from 0 to 0x7F", id)
	}
	if err != nil {
		return Job{}, err
	}
	return done("session "+args[0], func(t *uds.Tester) error { return t.Session(byte(id)) })
}

func parseUnlock(s *Spec, args []string, virtual bool) (Job, error) {
	if err := count(args, 1, 1, "unlock LEVEL"); err != nil {
		return Job{}, err
	}
	level, err := strconv.ParseUint(args[0], 0, 7)
	if err != nil || level%2 == 0 {
		return Job{}, fmt.Errorf("%.60q is not the level of a seed, an odd number below 0x80", args[0])
	}
	return done("unlocked", func(t *uds.Tester) error { return s.unlock(t, byte(level), virtual) })
}

func parseReset(_ *Spec, args []string, _ bool) (Job, error) {
	if err := count(args, 0, 1, "reset [hard|key|soft]"); err != nil {
		return Job{}, err
	}
	kind, err := find(standardResets, append(args, "hard")[0], "reset")
	if err == nil && kind > 0x7F {
		err = fmt.Errorf("reset 0x%X is not from 0 to 0x7F", kind)
	}
	if err != nil {
		return Job{}, err
	}
	return done("reset", func(t *uds.Tester) error { return t.Reset(byte(kind)) })
}

func parseRoutine(s *Spec, args []string, _ bool) (Job, error) {
	if err := count(args, 1, -1, "routine ROUTINE [start|stop|result] [BYTES]"); err != nil {
		return Job{}, err
	}
	id, err := find(s.Routines, args[0], "routine")
	if err != nil {
		return Job{}, err
	}
	kind, rest := 0, args[1:]
	if len(rest) > 0 {
		if kind = slices.Index([]string{"start", "stop", "result"}, rest[0]); kind >= 0 {
			rest = rest[1:]
		}
		kind = max(kind, 0)
	}
	var option []byte
	if len(rest) > 0 {
		if option, err = ParseBytes(strings.Join(rest, " ")); err != nil {
			return Job{}, err
		}
	}
	return Job{Do: func(t *uds.Tester) ([]string, error) {
		status, err := t.Routine(byte(kind+1), id, option)
		return []string{strings.TrimSpace("done " + uds.Bytes(status))}, err
	}}, nil
}

// onOff reads on or off.
func onOff(args []string, form string) (bool, error) {
	if len(args) != 1 || args[0] != "on" && args[0] != "off" {
		return false, fmt.Errorf("expected %s on|off", form)
	}
	return args[0] == "on", nil
}

func parseCommunication(_ *Spec, args []string, _ bool) (Job, error) {
	on, err := onOff(args, "communication")
	control := byte(3)
	if on {
		control = 0
	}
	if err != nil {
		return Job{}, err
	}
	return done("communication "+args[0], func(t *uds.Tester) error { return t.Communication(control, 1) })
}

func parseSetting(_ *Spec, args []string, _ bool) (Job, error) {
	on, err := onOff(args, "setting")
	if err != nil {
		return Job{}, err
	}
	return done("setting "+args[0], func(t *uds.Tester) error { return t.DTCSetting(on) })
}

func parsePresent(_ *Spec, args []string, _ bool) (Job, error) {
	if err := count(args, 0, 0, "no further words"); err != nil {
		return Job{}, err
	}
	return done("present", (*uds.Tester).Present)
}

func parseRaw(_ *Spec, args []string, _ bool) (Job, error) {
	request, err := ParseBytes(strings.Join(args, " "))
	if err != nil {
		return Job{}, err
	}
	return Job{Do: func(t *uds.Tester) ([]string, error) {
		a, err := t.Ask(request...)
		return []string{uds.Bytes(a)}, err
	}}, nil
}

func parseFlash(s *Spec, args []string, virtual bool) (Job, error) {
	if err := count(args, 1, 1, "flash FILE"); err != nil {
		return Job{}, err
	}
	text, err := inputfile.Read(args[0], inputfile.Executable)
	if err != nil {
		return Job{}, err
	}
	image, err := uds.ReadImage(args[0], bytes.NewReader(text))
	if err != nil {
		return Job{}, err
	}
	return Job{Do: func(t *uds.Tester) ([]string, error) { return s.flash(t, image, virtual) }}, nil
}

// flash writes an image: session, access, erasing, segments, check, reset, as the diagnosis file says.
func (s *Spec) flash(t *uds.Tester, image []uds.Segment, virtual bool) ([]string, error) {
	f := &s.Flash
	if f.Session != 0 {
		if err := t.Session(f.Session); err != nil {
			return nil, err
		}
	}
	if f.Unlock != 0 {
		if err := s.unlock(t, f.Unlock, virtual); err != nil {
			return nil, err
		}
	}
	if err := s.runRoutine(t, f.Erase); err != nil {
		return nil, err
	}
	total := 0
	for _, part := range image {
		if err := t.Write(f.Download, part, nil); err != nil {
			return nil, err
		}
		total += len(part.Data)
	}
	if err := s.runRoutine(t, f.Check); err != nil {
		return nil, err
	}
	if f.Reset != 0 {
		if err := t.Reset(f.Reset); err != nil {
			return nil, err
		}
	}
	return []string{fmt.Sprintf("%d bytes in %d segments written", total, len(image))}, nil
}

// runRoutine starts a routine of the flash; "": none.
func (s *Spec) runRoutine(t *uds.Tester, name string) error {
	if name == "" {
		return nil
	}
	id, err := find(s.Routines, name, "routine")
	if err == nil {
		_, err = t.Routine(1, id, nil)
	}
	if err != nil {
		err = fmt.Errorf("routine %s: %w", name, err)
	}
	return err
}

// obdModes are the modes with the numbers of their arguments.
var obdModes = map[string][2]int{"1": {1, 1}, "2": {1, 1}, "3": {0, 0}, "4": {0, 0}, "7": {0, 0}, "9": {1, 1}, "0A": {0, 0}}

func parseOBD(_ *Spec, args []string, _ bool) (Job, error) {
	if len(args) == 0 {
		return Job{}, errors.New("expected MODE [PARAMETER]")
	}
	n, known := obdModes[strings.ToUpper(args[0])]
	if !known {
		return Job{}, fmt.Errorf("mode %.60q is not one of 1, 2, 3, 4, 7, 9, 0A", args[0])
	}
	mode, _ := strconv.ParseUint(args[0], 16, 8)
	if err := count(args[1:], n[0], n[1], fmt.Sprintf("%d parameters after mode %s", n[0], args[0])); err != nil {
		return Job{}, err
	}
	request := []byte{byte(mode)}
	if len(args) == 2 {
		p, err := strconv.ParseUint(strings.TrimPrefix(args[1], "0x"), 16, 8)
		if err != nil {
			return Job{}, fmt.Errorf("parameter %.60q is not a number of two hexadecimal digits", args[1])
		}
		request = append(request, byte(p))
	}
	if mode == uds.OBDFreeze {
		request = append(request, 0) // the first freeze frame
	}
	return Job{All: request}, nil
}
