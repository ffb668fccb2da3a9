package bench

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"lockstep/io/framelog"
	"lockstep/io/inputfile"
	"lockstep/io/record"
	"lockstep/model/plants"
)

// kinds describes the files of each kind, as Kind returns them. is continues "FILE is", with the
// commands that take the file %[1]s; wanted names it where it is expected.
var kinds = map[string]struct{ is, wanted string }{
	"plant":       {"a plant (lockstep sim %[1]s)", "a plant (plant: NAME)"},
	"bench":       {"a bench (lockstep run %[1]s, lockstep gen -bench %[1]s)", "a bench (bench: NAME)"},
	"scenario":    {"a scenario (lockstep sim BENCH -scenario %[1]s)", "a scenario (scenario: NAME)"},
	"sweep":       {"a sweep (lockstep sweep %[1]s)", "a sweep (sweep: NAME)"},
	"diagnosis":   {"a diagnosis file (lockstep uds %[1]s -bus can0 dtc; diagnosis: %[1]s in a bench)", "a diagnosis file (uds: {request: 0x7E1, response: 0x7E9})"},
	"inputs":      {"a file of inputs (lockstep sim PLANT -in %[1]s)", "inputs (CSV with the columns time[s] and name[unit])"},
	"database":    {"a database (lockstep check %[1]s; database: %[1]s in a bench)", "a database (DBC)"},
	"record":      {"a record (lockstep replay %[1]s, lockstep export %[1]s -o FILE)", "a record (run -record)"},
	"log":         {"a log of CAN frames (lockstep run BENCH -bus file:%[1]s)", "a log of CAN frames (candump, ASC, TRC, CSV of python-can)"},
	"BLF":         {"a log of CAN frames in the format BLF (lockstep run BENCH -bus file:%[1]s)", "BLF"},
	"SQLite":      {"a database in SQLite, which no command reads (of python-can: python3 -m can.logconvert %[1]s LOG.blf)", ""},
	"MDF":         {"a measurement in the format MDF (with frames: lockstep run BENCH -bus file:%[1]s)", "MDF4"},
	"certificate": {"a certificate (lockstep certify -compare %[1]s)", "a certificate (JSON of certify -o)"},
	"state":       {"the state of a soak (lockstep soak BENCH -state %[1]s)", "the state of a soak"},
	"report":      {"a report in JSON, which no command reads", ""},
	"JSON":        {"a file in JSON, which no command reads", ""},
	"ARXML":       {"an AUTOSAR description (ARXML), which no command reads: convert it to a database (DBC)", ""},
	"XML":         {"a file in XML, which no command reads", ""},
	"HTML":        {"a page in HTML, which no command reads", ""},
	"picture":     {"a picture, which no command reads", ""},
	"table":       {"a table of a sweep (lockstep sweep -merge FOLDER)", ""},
	"executable":  {"an executable (lockstep run BENCH -kernel %[1]s)", "a target executable (gen -bench)"},
	"archive":     {"an archive, such as an FMU or a compressed file, which no command reads", ""},
	"gzip":        {"packed by gzip: unpack it with gunzip %[1]s", ""},
	"UTF-16":      {"a text in UTF-16: save it in UTF-8", ""},
	"binary":      {"a binary file, which no command reads", ""},
	"empty":       {"empty", ""},
	"":            {"a text of unknown kind", ""},
}

// magic is the beginning of files of a kind.
type magic struct {
	form *regexp.Regexp
	kind string
}

// magics holds the beginnings of files that are not texts, or not of lockstep. A byte that is not UTF-8
// is \x{FFFD} for regexp. A target, which locks its memory, does not call it.
var magics = sync.OnceValue(func() []magic {
	return []magic{
		{regexp.MustCompile(`^LOGG`), "BLF"},
		{regexp.MustCompile(`^(MDF     |UnFinMF )`), "MDF"},
		{regexp.MustCompile(`^SQLite format 3`), "SQLite"},
		{regexp.MustCompile(`^\x7fELF`), "executable"},
		{regexp.MustCompile(`^(\x{FFFD}PNG\r\n|%PDF-)`), "picture"},
		{regexp.MustCompile(`^PAR1`), "table"},
		{regexp.MustCompile(`^\x1f\x{FFFD}`), "gzip"},
		{regexp.MustCompile(`^(PK\x03\x04|BZh|\x{FFFD}7zXZ)`), "archive"},
		{regexp.MustCompile(`^\s*<[^>]*(?s:.*)<AUTOSAR`), "ARXML"},
		{regexp.MustCompile(`(?i)^\s*<(!doctype html|html)`), "HTML"},
		{regexp.MustCompile(`^\s*<[?!A-Za-z]`), "XML"},
		{regexp.MustCompile(`^\s*\{(?s:.*)"lockstep_certificate"`), "certificate"},
		{regexp.MustCompile(`^\s*\{\s*"lockstep_soak"`), "state"},
		{regexp.MustCompile(`^\s*\{\s*"plant"(?s:.*)"step_ns"`), "report"},
	}
})

// Kind returns the kind of a file, a key of kinds, from its name and the beginning of its content. It
// returns "" for a text of unknown kind.
func Kind(file string, data []byte) string {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return "UTF-16"
	}
	data = bytes.TrimPrefix(data, []byte(ByteOrderMark))
	if len(bytes.TrimSpace(data)) == 0 {
		return "empty"
	}
	switch {
	case record.IsRecord(data):
		return "record"
	case framelog.IsText(data):
		return "log"
	}
	for _, m := range magics() {
		if m.form.Match(data[:min(len(data), inputfile.HeadSize)]) {
			return m.kind
		}
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "binary"
	}
	kind := plants.Kind(file, data)
	if kind == "" && looksLikeJSON.Match(data) {
		kind = "JSON"
	}
	return kind
}

// looksLikeJSON matches an object or a list of JSON.
var looksLikeJSON = regexp.MustCompile(`^\s*(\{\s*("[^"]*"\s*:|\}\s*$)|\[\s*[{"\[])`)

// KindError is the error for a file of the wrong kind.
type KindError struct {
	Command, File string   // command, "" for a file named in another one, and name of the file as given
	Kind          string   // kind of the file
	Want          []string // kinds expected
}

func (e *KindError) Error() string {
	var wanted []string
	for _, kind := range e.Want {
		wanted = append(wanted, kinds[kind].wanted)
	}
	n := len(wanted) - 1
	text := strings.Join(wanted[:n], ", ")
	if n > 0 {
		text += " or "
	}
	is := strings.ReplaceAll(kinds[e.Kind].is, "%[1]s", e.File)
	text = fmt.Sprintf("%s is %s; expected %s", e.File, is, text+wanted[n])
	if e.Command != "" {
		text = e.Command + ": " + text
	}
	return text
}

// CheckKind refuses a file that is of none of the kinds want. A text of unknown kind is accepted where
// its reader says better what is missing: YAML without the key that tells its kind, and a log.
func CheckKind(command, file string, data []byte, want ...string) (kind string, err error) {
	kind = Kind(file, data)
	if kind == "" && looksLikeYAML.Match(data) {
		i := slices.IndexFunc(want, func(kind string) bool {
			return slices.Contains([]string{"plant", "bench", "scenario", "sweep"}, kind)
		})
		if i >= 0 {
			return want[i], nil
		}
	}
	if slices.Contains(want, kind) || kind == "" && slices.Contains(want, "log") {
		return kind, nil
	}
	return kind, &KindError{command, file, kind, want}
}

// looksLikeYAML matches a text whose first line, after comments, is a key of YAML.
var looksLikeYAML = regexp.MustCompile(`^(#[^\n]*\n|\s*\n|---[^\n]*\n)*(\{|["']?[A-Za-z_][A-Za-z0-9_.]*["']?\s*:(\s|$))`)

// CheckFile is CheckKind for a regular file that its reader opens later; it reads the beginning only. A
// file that does not exist is an error only if it exists with an extension.
func CheckFile(command, name string, want ...string) error {
	info, err := os.Stat(name)
	if near := withExtension(name, want...); err != nil && near != "" {
		return fmt.Errorf("%s: no file %s (did you mean %s?)", command, name, near)
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil // the reader says why it cannot open the file
	}
	data, err := inputfile.ReadHead(name)
	if err != nil {
		return nil
	}
	_, err = CheckKind(command, name, data, want...)
	return err
}

// extensions are those of the files that lockstep reads.
var extensions = []string{".yaml", ".yml", ".dbc", ".csv", ".rec", ".json", ".log", ".asc", ".trc", ".blf", ".mf4"}

// withExtension returns the name of an existing file that is name with an extension, of one of the kinds
// want if there is one; "" if there is no file.
func withExtension(name string, want ...string) (found string) {
	for _, ext := range extensions {
		if info, err := os.Stat(name + ext); err != nil || !info.Mode().IsRegular() || filepath.Base(name) == "." {
			continue
		}
		if data, _ := inputfile.ReadHead(name + ext); slices.Contains(want, Kind(name+ext, data)) {
			return name + ext
		}
		found = cmp.Or(found, name+ext)
	}
	return found
}

// ReadKind is ReadAny for a file of one of the kinds want; command names the caller in errors.
func ReadKind(command, name string, want ...string) (file string, data []byte, kind string, err error) {
	file, data, err = ReadAny(name, want...)
	if err != nil && !errors.Is(err, inputfile.ErrTooLarge) {
		return "", nil, "", err
	}
	kind, wrong := CheckKind(command, name, data, want...)
	if wrong != nil {
		err = wrong
	}
	return file, data, kind, err
}
