// Package control owns the door of a run: the description of what a run offers, the HTTP requests of
// its socket, and the commands that find, ask, list and end runs.
//
// The package does not know what a change means: scenario.Commands translates its line, and the
// loop applies it. A change crosses the status block (rt.StatusBlock.Post) and takes effect at one
// tick. Signals come from the ring, which the supervisor's recorder reads; nothing else leads to the
// target. Only its user and root can open a socket.
//
// Root's commands meet processes, names, folders and sockets of any user, who may have made them to
// mislead or block root. So package inspect opens the memory of targets, and the hand-over of another user
// is decoded only if root names the process.
// A socket counts only if its folder, its file and its listener are one user's.
//
// All requests and answers are in openapi.json, which a test holds against routes and fields. A further
// request is a row of routes, a further signal one of Describe.
//
// Reading order: describe.go (Description, Signal), api.go (the routes), stream.go (values and streams; package traffic
// has the messages and frames),
// control.go (Server, Answer, changes), parameters.go (changes of parameters), standing.go (virtual time),
// accept.go (places of clients); socket.go (where sockets are, Ask),
// verbs.go (the requests of lockstep ctl), list.go (List, the runs of a host), target.go (target
// processes, FindOrphan), stop.go (Stop).
package control
