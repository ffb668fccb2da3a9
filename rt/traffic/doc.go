// Package traffic owns the frames on the buses of a run as its clients see them: the layout of each message, streams
// of decoded frames, and the counts, cycles, ages and bus loads measured from them.
//
// It takes the frames from the ring by way of the caller, and answers with types that package control sends as JSON.
// It does not serve requests, and no client makes it wait.
//
// Reading order: buses.go (Buses, Message), traffic.go (Traffic, the meters), frames.go (Frame, Stream).
package traffic
