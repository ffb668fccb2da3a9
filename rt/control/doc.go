// Package control owns the requests to a run from outside: the control socket of a supervisor,
// and the commands that find, ask, list and end runs.
//
// The package does not know what a change means: scenario.Commands translates its line, and the
// loop applies it. A change crosses the status block (rt.Page.Post) and takes effect at one tick.
// Only its user and root can open a socket.
//
// A request is one line of words, quoted as a shell quotes them; the answer is one line of JSON,
// an Answer. The lines that change a run are those of scenario.Commands.Translate.
//
// Reading order: socket.go (where sockets are, Ask), control.go (Server, Answer), text.go (an
// Answer for people), list.go (List, the runs of a host), stop.go (Stop), targets.go (targets
// without a supervisor).
package control
