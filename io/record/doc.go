// Package record owns the record of a run, its export to common log formats, and records and logs
// (package framelog) as a source of frames.
//
// It knows frames (package can) and named numbers with their units. It does not know plants or signal
// maps, does not block and starts no goroutine.
//
// Reading order: header.go (Header, Entry, Tick, Frame, Event), write.go (Writer), read.go
// (Reader); chunk.go and codec.go are the file format. Then the other formats: export.go
// lists them and writes CSV; candump.go, asc.go, blf.go and mdf.go write one each. source.go reads any log
// or record.
//
// # The file
//
// A record is a file of this format. Numbers are little endian; a varint is that of
// encoding/binary, in zigzag form if signed.
//
//	file    magic "lockrec8", then chunks: one header, one hand-over, data chunks and tables, one end
//	chunk    0  4  marker 9e 4c 43 e9
//	         4  4  number of the chunk in its file, from 0
//	         8  1  kind: 1 header, 2 data, 3 end, 4 hand-over, 5 tables
//	         9  1  packing of the payload: 0 none, 1 deflate
//	        10  2  0
//	        12  4  length of the payload in the file; of data at most 1 MiB
//	        16  4  length of the payload unpacked; of data at most 1 MiB
//	        20  4  CRC-32C of bytes 0 to 19 and of the payload in the file
//	        24     payload
//	header  Header as JSON, with the SHA-256 of the hand-over and of each file
//	hand-over  prepared data of the run, in the encoding of rt/bench; may be empty
//	tables  prepared data of the run from the next data chunk on, in the encoding of rt/bench
//	data    records, each a byte 1 (tick), 2 (frame) or 3 (event) and its fields
//	end     a byte 0
//
//	tick    varint   index, minus the index of the tick before
//	        uvarint  flags
//	        values   inputs, then outputs: a byte n = 0 to 8 and n bytes
//	        varints  phases, each minus the phase of the tick before, ns
//	frame   byte     bits: 1 sent, 0 received; 2 not accepted by the bus; 4 with the safe
//	                 values; 8 withheld, 16 a copy: see Frame; 32 with a time of the
//	                 controller; 64 Other: see Frame; 128 with Acts: see Frame
//	        byte     bus
//	        varint   tick, minus the index of the last tick record
//	        varint   time, minus the time of the frame or event before, ns
//	        varint   time of the controller, minus the last one before, ns; only with bit 32
//	        varint   Acts, minus the last one before, ns; only with bit 128
//	        4 1 1    identifier with the bits of can.Frame, length, flags of can.Frame
//	        length   data
//	event   byte     kind
//	        varint   tick, as for a frame
//	        varint   time, as for a frame
//	        uvarint  count
//	        uvarint  length of the text, then the text
//
// Reader refuses a file of another version and names the version.
//
// All differences start from 0 in every chunk, so that each chunk can be read alone.
//
// A value is the 64 bits of a float64 as an integer b. Along a smooth signal b is nearly
// linear. The file therefore holds the difference d = b - (2 b1 - b2) to the line through b1 of
// the tick before and b2 of the tick before that, modulo 2^64, in zigzag form without its
// upper zero bytes. A constant value costs one byte, and every bit is preserved, also of NaN
// and -0. The chunk is then deflated.
//
// # What survives
//
// Writer.Flush passes all data to the kernel, where it survives the death of the process.
// Writer.Sync also waits until the data is on the disk, where it survives a loss of power.
// A truncated or damaged chunk fails its CRC-32C: Reader skips to the next valid chunk and
// returns an event Damage in its place; Reader.Torn describes what is missing at the end.
// Writer and Reader hold one or two chunks in memory, independent of the length of the run.
//
// # Other formats
//
// Export writes candump logs, ASC, BLF, MDF4 and CSV. OpenSource makes a log with frames in any of these
// formats, a TRC log or the record itself a source of frames in the order of time.
package record
