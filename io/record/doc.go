// Package record owns what happened: the record of a run, its export to the log
// formats of the field, and the logs of others as a source of frames.
//
// It knows frames (package can) and numbers with names; it does not know what a
// plant or a signal map is, does not wait and starts nothing.
//
// Reading order: entry.go (Entry, Tick, Frame, Event), header.go (Header), write.go (Writer),
// read.go (Reader); chunk.go and codec.go are the form of the file, series.go is a record in
// several files. Then the formats of the field: export.go lists them; candump.go, asc.go, blf.go,
// mdf.go with mdf_block.go, and csv.go write one each. log.go, candump_read.go and asc_read.go read
// logs, source.go is any of them.
//
// # The file
//
// A record is a file, or a series of files of one run, of this form. Numbers are
// little endian; a varint is that of encoding/binary, signed ones are in its
// zigzag form.
//
//	file    magic "lockrec4", then chunks: one header, data chunks, one end
//	chunk    0  4  marker 9e 4c 43 e9
//	         4  4  number of the chunk in its file, from 0
//	         8  1  kind: 1 header, 2 data, 3 end
//	         9  1  packing of the payload: 0 none, 1 deflate
//	        10  2  0
//	        12  4  length of the payload in the file; of data at most 1 MiB
//	        16  4  length of the payload unpacked; of data at most 1 MiB
//	        20  4  CRC-32C of bytes 0 to 19 and of the payload in the file
//	        24     payload
//	header  Header as JSON
//	data    records, each a byte 1 (tick), 2 (frame) or 3 (event) and its fields
//	end     a byte: 1 if the run goes on in a next file, else 0
//
//	tick    varint   index, less that of the tick before
//	        uvarint  flags
//	        values   inputs, then outputs: a byte n = 0 to 8 and n bytes
//	        varints  phases, each less that of the tick before, ns
//	frame   byte     bits: 1 sent, 0 received; 2 not taken by the bus; 4 with the safe
//	                 values; 8 withheld, 16 a copy: see Frame; 32 a time of the controller
//	                 is there; 64 other
//	        byte     bus
//	        varint   tick, less the index of the last tick record
//	        varint   time, less that of the frame or event before, ns
//	        varint   time of the controller, less that of the frame before that has one,
//	                 ns; only if it is there
//	        4 1 1    identifier with the bits of can.Frame, length, flags of can.Frame
//	        length   data
//	event   byte     kind
//	        varint   tick, as of a frame
//	        varint   time, as of a frame
//	        uvarint  count
//	        uvarint  length of the text, then the text
//
// A file of the form "lockrec2" has no bit 64, one of the form "lockrec1" none of the
// bits 8, 16 and 32 either; they are the same otherwise, and Reader takes all three.
//
// What is said "less that before" starts from 0 in every chunk, so that each chunk
// can be read alone.
//
// A value is the 64 bits of a float64 as an integer b. Along a smooth signal b runs
// nearly straight, so what is written is the difference d = b - (2 b1 - b2) to the
// straight line through b1 of the tick before and b2 of the one before that, modulo
// 2^64, in zigzag form and without its upper zero bytes. A value that stays costs one
// byte, and every bit comes back: of NaN, of -0, of everything. The chunk is then
// deflated.
//
// # What survives
//
// Writer.Flush hands everything to the kernel: it survives the death of the process.
// Writer.Sync also waits until it is on the disk: it survives a loss of power. A
// chunk that is cut or damaged does not pass its CRC-32C; Reader leaves it out, looks
// for the next one, yields an event Damage in its place, and Reader.Torn says what is
// missing at the end. Both sides hold a chunk or two in memory, whatever the length of
// the run.
//
// # Other formats
//
// NewExporter writes candump logs, ASC, BLF, MDF4 and CSV. OpenLog reads candump logs
// and ASC, and OpenSource makes one of them, or the record itself, a source of frames
// in the order of time.
package record
