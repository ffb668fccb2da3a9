package dbc_test

import (
	"fmt"
	"strconv"
	"strings"

	"lockstep/io/can"
	"lockstep/io/messages"
)

const head = `VERSION ""

NS_ :
	CM_
	SG_MUL_VAL_

BS_:

BU_: Getriebe Motor Bench

`

const definitions = `BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_ BO_ "GenMsgSendType" ENUM "Cyclic","OnChange","IfActive";
BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","reserved","J1939PG","reserved","reserved","reserved","reserved","reserved","reserved","reserved","reserved","reserved","reserved","StandardCAN_FD","ExtendedCAN_FD";
BA_DEF_ BO_ "CANFD_BRS" ENUM "0","1";
BA_DEF_ SG_ "GenSigStartValue" FLOAT 0 100000;
BA_DEF_ SG_ "SPN" INT 0 524287;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_DEF_DEF_ "GenMsgSendType" "Cyclic";
BA_DEF_DEF_ "VFrameFormat" "StandardCAN";
BA_DEF_DEF_ "CANFD_BRS" "1";
BA_DEF_DEF_ "GenSigStartValue" 0;
BA_DEF_DEF_ "SPN" 0;
`

// write returns db in the DBC format and sets the lines of db.
func write(db *messages.Database) string {
	w := &writer{line: 1}
	w.printf("%s", head)
	for i := range db.Messages {
		w.message(&db.Messages[i])
	}
	for i := range db.Messages {
		w.comments(&db.Messages[i])
	}
	w.printf("%s", definitions)
	for i := range db.Messages {
		w.attributes(&db.Messages[i])
	}
	for i := range db.Messages {
		w.meanings(&db.Messages[i])
	}
	return w.b.String()
}

// writer holds the state of write.
type writer struct {
	b    strings.Builder
	line int
}

func (w *writer) printf(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	w.line += strings.Count(s, "\n")
	w.b.WriteString(s)
}

// message writes BO_ and SG_.
func (w *writer) message(m *messages.Message) {
	m.Line = w.line
	w.printf("BO_ %d %s: %d %s\n", m.ID, m.Name, m.Len, orNobody(m.Sender))
	for i := range m.Signals {
		s := &m.Signals[i]
		s.Line = w.line
		order, sign, mux := 1, "+", ""
		if s.BigEndian {
			order = 0
		}
		if s.Signed {
			sign = "-"
		}
		if s.MuxedBy != "" {
			mux = fmt.Sprintf("m%d", s.Ranges[0][0])
		}
		if s.Multiplexor {
			mux += "M"
		}
		to := strings.Join(s.Receivers, ",")
		w.printf(" SG_ %s %s : %d|%d@%d%s (%s,%s) [%s|%s] \"%s\" %s\n", s.Name, mux, s.Start, s.Len, order, sign,
			decimal(s.Factor), decimal(s.Offset), decimal(s.Min), decimal(s.Max), s.Unit, orNobody(to))
	}
	w.printf("\n")
}

// comments writes BO_TX_BU_ and CM_.
func (w *writer) comments(m *messages.Message) {
	quote := func(s string) string { return strings.ReplaceAll(s, `"`, `\"`) }
	if len(m.OtherSenders) > 0 {
		w.printf("BO_TX_BU_ %d : %s,%s;\n", m.ID, m.Sender, strings.Join(m.OtherSenders, ","))
	}
	if m.Comment != "" {
		w.printf("CM_ BO_ %d \"%s\";\n", m.ID, quote(m.Comment))
	}
	for _, s := range m.Signals {
		if s.Comment != "" {
			w.printf("CM_ SG_ %d %s \"%s\";\n", m.ID, s.Name, quote(s.Comment))
		}
	}
}

// attributes writes BA_ where the value is not the default.
func (w *writer) attributes(m *messages.Message) {
	if m.CycleNs != 0 {
		w.printf("BA_ \"GenMsgCycleTime\" BO_ %d %d;\n", m.ID, m.CycleNs/1e6)
	}
	if i := map[string]int{"OnChange": 1, "IfActive": 2}[m.SendType]; i > 0 {
		w.printf("BA_ \"GenMsgSendType\" BO_ %d %d;\n", m.ID, i)
	}
	format := 0
	if m.ID&can.EFF != 0 {
		format = 1
	}
	switch {
	case m.FD:
		format += 14
	case m.J1939:
		format = 3
	}
	if format > 0 {
		w.printf("BA_ \"VFrameFormat\" BO_ %d %d;\n", m.ID, format)
	}
	if m.FD && !m.BRS {
		w.printf("BA_ \"CANFD_BRS\" BO_ %d 0;\n", m.ID)
	}
	for _, s := range m.Signals {
		if s.Initial != 0 {
			w.printf("BA_ \"GenSigStartValue\" SG_ %d %s %s;\n", m.ID, s.Name, decimal(s.Initial))
		}
		if s.SPN != 0 {
			w.printf("BA_ \"SPN\" SG_ %d %s %d;\n", m.ID, s.Name, s.SPN)
		}
	}
}

// meanings writes VAL_, SIG_VALTYPE_ and SG_MUL_VAL_, the last as Vector does: for
// all multiplexed signals of a message if one needs it.
func (w *writer) meanings(m *messages.Message) {
	extended := false
	for _, s := range m.Signals {
		extended = extended || s.MuxedBy != "" && (s.Multiplexor || len(s.Ranges) > 1 || s.Ranges[0][0] != s.Ranges[0][1])
	}
	for _, s := range m.Signals {
		if len(s.Values) > 0 {
			w.printf("VAL_ %d %s", m.ID, s.Name)
			for _, v := range s.Values {
				w.printf(" %d \"%s\"", v.Raw, v.Text)
			}
			w.printf(" ;\n")
		}
		if s.Float {
			w.printf("SIG_VALTYPE_ %d %s : %d;\n", m.ID, s.Name, s.Len/32)
		}
		if s.MuxedBy != "" && extended {
			var list []string
			for _, r := range s.Ranges {
				list = append(list, fmt.Sprintf("%d-%d", r[0], r[1]))
			}
			w.printf("SG_MUL_VAL_ %d %s %s %s;\n", m.ID, s.Name, s.MuxedBy, strings.Join(list, ", "))
		}
	}
}

func orNobody(name string) string {
	if name == "" {
		return "Vector__XXX"
	}
	return name
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'G', -1, 64) }
