package specialise

import (
	"fmt"
	"strings"
)

// stmt is a statement of the generated tick.
type stmt struct {
	kind  stmtKind
	text  string   // a line; the head of an if or for
	names []string // variables that it declares or sets
	right string   // what it sets them to
	pure  bool     // right calls nothing that has an effect
	sink  *sink    // what it adds to, where right reads nothing of that
	body  []*stmt
	els   []*stmt
}

type stmtKind uint8

const (
	line    stmtKind = iota
	declare          // names := right
	set              // names = right
	branch           // if text {body} else {els}
	loop             // for names := range right {body}, or for text {body}
	comment
)

// write appends the statements as text; gofmt indents them.
func write(b *strings.Builder, list []*stmt) {
	for _, st := range list {
		switch st.kind {
		case line:
			b.WriteString(st.text + "\n")
		case comment:
			b.WriteString("// " + st.text + "\n")
		case declare:
			fmt.Fprintf(b, "%s := %s\n", strings.Join(st.names, ", "), st.right)
		case set:
			op := " = "
			if st.text != "" {
				op = st.text
			}
			right, minus := strings.CutPrefix(st.right, "-")
			if op == " += " && minus && single(right) { // the compiler would turn the sign first
				op = " -= "
			} else {
				right = st.right
			}
			fmt.Fprintf(b, "%s%s%s\n", strings.Join(st.names, ", "), op, right)
		case loop:
			switch {
			case st.right != "" && len(st.names) > 0:
				fmt.Fprintf(b, "for %s := range %s {\n", st.names[0], st.right)
			case st.right != "":
				fmt.Fprintf(b, "for range %s {\n", st.right)
			default:
				b.WriteString("for " + st.text + " {\n")
			}
			write(b, st.body)
			b.WriteString("}\n")
		case branch:
			writeBranch(b, st)
		}
	}
}

func writeBranch(b *strings.Builder, st *stmt) {
	b.WriteString("if " + st.text + " {\n")
	write(b, st.body)
	switch {
	case len(st.els) == 0:
		b.WriteString("}\n")
	case len(st.els) == 1 && st.els[0].kind == branch:
		b.WriteString("} else ")
		writeBranch(b, st.els[0])
	default:
		b.WriteString("} else {\n")
		write(b, st.els)
		b.WriteString("}\n")
	}
}

// tidy drops variables that nothing reads, again and again.
func tidy(list []*stmt) []*stmt {
	for {
		reads := map[string]int{}
		count(list, reads)
		dropped := false
		list = drop(list, reads, &dropped)
		if !dropped {
			return list
		}
	}
}

// count adds up how often each name is read.
func count(list []*stmt, reads map[string]int) {
	text := func(t string) {
		eachName(t, func(from, to int) {
			if from == 0 || t[from-1] != '.' { // that is a field
				reads[t[from:to]]++
			}
		})
	}
	for _, st := range list {
		switch st.kind {
		case comment:
		case declare:
			text(st.right)
		case set:
			for _, n := range st.names {
				if strings.ContainsAny(n, ".[") {
					text(n)
				}
			}
			text(st.right)
		default:
			text(st.text)
			text(st.right)
		}
		count(st.body, reads)
		count(st.els, reads)
	}
}

func drop(list []*stmt, reads map[string]int, dropped *bool) (kept []*stmt) {
	for _, st := range list {
		st.body, st.els = drop(st.body, reads, dropped), drop(st.els, reads, dropped)
		switch {
		case st.kind == declare || st.kind == set:
			unread := 0
			for i, n := range st.names {
				if n == "_" || !strings.ContainsAny(n, ".[") && reads[n] == 0 {
					unread++
					if n != "_" && len(st.names) > 1 {
						st.names[i], *dropped = "_", true
					}
				}
			}
			if unread < len(st.names) {
				break
			}
			if st.pure {
				*dropped = true
				continue
			}
			if st.names[0] != "_" || len(st.names) > 1 {
				*dropped = true
			}
			if strings.HasSuffix(st.right, ")") && !st.pure {
				st = &stmt{kind: line, text: st.right}
			} else {
				st.kind, st.names, st.text = set, []string{"_"}, ""
			}
		case st.kind == branch && silentList(st.body) && silentList(st.els) && st.pure:
			*dropped = true
			continue
		case st.kind == branch && silentList(st.body) && !silentList(st.els):
			st.text, st.body, st.els = "!("+st.text+")", st.els, nil
		case st.kind == loop && silentList(st.body) && st.pure:
			*dropped = true
			continue
		case st.kind == loop && len(st.names) > 0 && reads[st.names[0]] == 0:
			st.names, *dropped = nil, true
		}
		kept = append(kept, st)
	}
	return kept
}

// silentList reports whether there is nothing but comments.
func silentList(list []*stmt) bool {
	for _, st := range list {
		if st.kind != comment {
			return false
		}
	}
	return true
}

// size is the number of statements.
func size(list []*stmt) int {
	n := len(list)
	for _, st := range list {
		n += size(st.body) + size(st.els)
	}
	return n
}
