package bench

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockstep/io/yamlfile"
	"lockstep/rt/network"
)

// readPower reads the section power: {exec: ./supply.sh}, {scpi: HOST:PORT} or {gpio: /dev/gpiochip0, line: 4}. A
// relative name of a program is in dir, the folder of the bench file.
func readPower(r *yamlfile.Reader, f yamlfile.Field, dir string) *network.SupplySpec {
	s := r.Section(f, "power", "exec", "scpi", "gpio", "line", "active", "on", "off", "volts", "check", "timeout", "on_failure")
	texts := func(key string) (list []string) {
		if g, ok := s[key]; ok {
			list = r.Texts(g, "power: "+key)
		}
		return list
	}
	p := &network.SupplySpec{
		Exec: texts("exec"), On: texts("on"), Off: texts("off"), Set: texts("volts"),
		SCPI: r.Scalar(s["scpi"], "power: scpi").Text, Chip: r.Scalar(s["gpio"], "power: gpio").Text,
		Check: true, Timeout: 5 * time.Second,
	}
	kinds := 0
	for _, given := range []bool{len(p.Exec) > 0, p.SCPI != "", p.Chip != ""} {
		if given {
			kinds++
		}
	}
	if kinds != 1 {
		r.Fail(f, "power: expected one of exec: ./PROGRAM, scpi: HOST:PORT and gpio: /dev/gpiochipN")
	}
	for key, of := range map[string]string{"line": p.Chip, "active": p.Chip, "on": p.SCPI, "off": p.SCPI, "volts": p.SCPI, "check": p.SCPI} {
		if g, ok := s[key]; ok && of == "" {
			r.Fail(g, "power: %s belongs to scpi or gpio, which the section does not have", key)
		}
	}
	p.Dir, _ = filepath.Abs(dir)
	if len(p.Exec) > 0 && strings.Contains(p.Exec[0], "/") && !filepath.IsAbs(p.Exec[0]) {
		p.Exec = append([]string{filepath.Join(p.Dir, p.Exec[0])}, p.Exec[1:]...)
	}
	if p.SCPI != "" {
		if host, port, err := net.SplitHostPort(p.SCPI); err != nil || host == "" || port == "" {
			r.Fail(s["scpi"], "power: scpi: %.60q is not HOST:PORT, like 192.0.2.5:5025", p.SCPI)
		}
	}
	if slices.ContainsFunc(p.Set, func(c string) bool {
		return strings.Count(c, "%") != strings.Count(c, "%g") || strings.Count(c, "%") > 1
	}) {
		r.Fail(s["volts"], "power: volts: a command has at most one %%, as %%g in place of the voltage")
	}
	if len(p.Set) > 0 && !slices.ContainsFunc(p.Set, func(c string) bool { return strings.Contains(c, "%g") }) {
		r.Fail(s["volts"], "power: volts: no command has %%g in place of the voltage, like VOLT %%g")
	}
	if p.Chip != "" {
		if s["line"].IsMissing() {
			r.Fail(f, "power: the line of the chip is missing (line: 4)")
		}
		p.Line = uint32(r.Unsigned(s["line"], "power: line", 1<<16))
		p.ActiveLow = !s["active"].IsMissing() && r.Choice(s["active"], "power: active", "high", "low") == "low"
	}
	if g, ok := s["check"]; ok {
		p.Check = r.Choice(g, "power: check", "true", "false") == "true"
	}
	if g, ok := s["timeout"]; ok {
		p.Timeout = time.Duration(readNanoseconds(r, g, "power: timeout", 1e6, 600e9))
	}
	if g, ok := s["on_failure"]; ok {
		p.Stop = r.Choice(g, "power: on_failure", "continue", "stop") == "stop"
	}
	return p
}
