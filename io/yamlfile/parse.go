package yamlfile

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of the parser: a hostile file must not cost much time or memory.
const (
	maxFile = 256 << 10 // size of a file, bytes
	maxFlow = 16        // depth of nested brackets
	maxDash = 8         // dashes "- - -" on one line
	maxKeys = 10000     // keys of a file; the parser's time grows with their square
)

// Document parses data and returns its only document; nil on error. A key that appears twice in
// a mapping is an error.
func (r *Reader) Document(data []byte) Node {
	start := Pos{1, 1}
	if len(data) > maxFile {
		r.FailAt(start, "the file has %d bytes, more than %d", len(data), maxFile)
		return nil
	}

	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\ufeff"))
	if r.checkTokens(tokens); r.Err != nil {
		return nil
	}
	f, err := parser.Parse(tokens, 0)
	var syntax yaml.Error
	switch {
	case errors.As(err, &syntax):
		r.FailAt(tokenPos(syntax.GetToken()), "YAML: %s", syntax.GetMessage())
	case err != nil:
		r.FailAt(start, "YAML: %w", err)
	case len(f.Docs) == 0 || f.Docs[0].Body == nil:
		r.FailAt(start, "the file is empty; it begins with plant: NAME, bench: NAME, scenario: NAME or sweep: NAME")
	case len(f.Docs) > 1:
		r.FailAt(NodePos(f.Docs[1].Body), "a second document begins here; a file holds one")
	default:
		return f.Docs[0].Body
	}

	return nil
}

// checkTokens refuses deep nesting, which would make the parser recurse, and the parts of
// YAML that lockstep files do not use.
func (r *Reader) checkTokens(tokens token.Tokens) {
	depth, dashes, line, keys := 0, 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if dashes++; t.Position.Line != line {
				dashes, line = 1, t.Position.Line
			}
		case token.MappingValueType:
			if keys++; keys == maxKeys {
				r.FailAt(tokenPos(t), "more than %d keys", maxKeys)
			}
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType:
			r.FailAt(tokenPos(t), "%q: anchors, aliases, tags, merge keys and ? keys are not supported; "+
				"write each value where it is needed", t.Value)
		}

		if depth > maxFlow || dashes > maxDash {
			r.FailAt(tokenPos(t), "nested too deeply")
		}
	}
}
