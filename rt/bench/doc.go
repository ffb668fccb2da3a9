// Package bench owns a test bench: its file, the supervisor that prepares and
// watches a run, and the hand-over to the process that ticks. It does not tick
// (package rt), know the mathematics of a plant (model, model/kernel) or speak to
// a bus (io/can).
//
// Everything that can fail, allocate, parse or look up a name happens in the
// supervisor, before the start: Load reads the file, Prepare turns it into a
// Handover of plain data, and Run opens the buses and starts the target process,
// the same binary executed again. The target decodes the Handover, enters its
// thread and ticks; it parses nothing and opens nothing.
//
// A bus of a bench file, with all that can be said of it; what is given in brackets is
// what holds where the file says nothing:
//
//	buses:
//	  drive:
//	    interface: can0              # or pair: in this process
//	    database: gearbox.dbc
//	    bitrate: 500 kbit/s          # for the load that check prints; data_bitrate: 2 Mbit/s of CAN FD
//	    recover: restart after 200 ms  # a controller that is off its bus, by the supervisor; or wait [wait: for its
//	                                 # driver (ip link ... restart-ms 100) or for somebody]
//	    units: {Unit_MinutInver: rpm, Getriebe_11.GE_MMom_Soll: N.m}
//	                                 # what units of the database mean, and those of signals without a right one
//	    frames:                      # that the bench sends
//	      Getriebe_11:
//	        send: cyclic             # on_change: at the tick at which a raw value changes; both
//	                                 # [GenMsgSendType of the database; where a cycle is given at least in that]
//	        cycle: 10 ms             # a multiple of the period
//	        phase: 5 ms              # [chosen so that no tick carries more than it must; check says it]
//	        min_gap: 20 ms           # on change at most so often [the database's GenMsgDelayTime]
//	        repeat: 3                # so many times more after a change [GenMsgNrOfRepetition], every GenMsgCycleTimeFast
//	        counter: COUNTER         # a signal that counts the frames, without more
//	        protect: {profile: e2e-2, data_ids: [0x3F, 0x69, ...], counter: COUNTER, checksum: CHECKSUM}
//	                                 # or a list of groups; the keys are the fields of messages.ProtectionSpec
//	        values:                  # of signals that no port drives [the start value, or raw 0; J1939: not available]
//	          GE_Fahrstufe: D        # a number, with or without a unit, or a text of the signal's values
//	          GE_Temperatur: {table: [[0 s, 20], [60 s, 90]], period: 120 s}
//	          GE_Moment: {sine: {mean: 100, amplitude: 20, frequency: 0.5 Hz}}
//	          GE_Drehzahl: {formula: 800 + 50*sin(pi*t), period: 2 s}     # t in s, by 1024 lines a period
//	    restbus: {Motor_14: {values: ...}}    # more frames; [cycle: the database's]
//	    send: [gear.speed -> Getriebe_11.GE_Drehzahl]
//	    receive: [TCU_1.pressure_C1 -> clutch1.pressure]
//	    messages:                    # what is expected of those received
//	      TCU_1:
//	        cycle: 10 ms             # [the database's]
//	        timeout: 30 ms           # without a valid frame; 0 s: none [three cycles]
//	        first_timeout: 2 s       # of the first frame, from the start on, while the unit boots [timeout]
//	        dlc: 8                   # exactly [at least the message's]
//	        protect: ...             # as above; what is ERROR, REPEATED or WRONGSEQUENCE is not decoded
//	        on_timeout: {substitute: {clutch1.pressure: 0 bar}}      # or safe [hold]
//	        on_error: safe           # likewise, while the window of the protection is INVALID
//	        invalid: {pressure_C1: [0xFFF, 4000-4094, SNA]}          # raw values that are none [J1939's]
//
//	    j1939:                       # of a bus with a name: the source addresses of what is sent are
//	      lost: stop                 # claimed before the first tick and defended; [stop], safe or continue when
//	      addresses:                 # another node takes one; without j1939 nothing is claimed
//	        0x00: {function: engine, identity: 1}    # the fields of j1939.Fields; [0]
//
// A frame that the bus does not take is sent once more at the next tick, before the
// others, with the values of that tick.
//
// How a bus stands that is an interface of this host, the supervisor knows by the error
// frames of its controller, on a socket of its own, and by asking the kernel: error-active,
// error-warning, error-passive, bus-off, down, gone. It shows it, and the report and the
// record have each change with its time; of error frames it reads 1280 per second and bus,
// and counts the rest. An interface that is made again is bound again, under the target's
// own socket. The target hears on that socket when its controller goes off the bus, and when
// it is back, and does what the bench says (end: bus_off), with a supervisor or without; the
// plant keeps its time whatever the bus does.
//
// Where a run is recorded, the supervisor hears on such a bus, on one more socket, what the
// filters of the target's keep away: all of it is in the record, marked, from grid point 0
// until the target has ended. Of the frames that come back from this host it leaves out
// those that the target has said it sent; the same identifier from another node or another
// program is there. What it cannot take in time is counted, in the record and in the report.
//
// What the processes share:
//
//	descriptor 3   the Handover, encoding/gob in a sealed memfd
//	descriptor 4   the page of counters (rt.Page), written by the target
//	descriptor 5.. one bus socket each, opened and bound by the supervisor; after them what
//	               the run holds, which the target keeps and does not know of
//	standard output of the target: what the host refused it, as JSON, before the first tick
//
// Who sits outside speaks to the supervisor, at the socket that control.go opens: see
// Handover.Command for the lines that change a run, and Answer for what comes back. A
// change crosses the page (Page.Post) and takes effect at one tick.
//
// Several benches run on one host, each with a CPU and with interfaces of its own: a run
// holds them by names in the kernel (hold.go) as long as it or its orphaned target lives,
// and who wants the same is refused by the holder's name. They are one host's as far as a
// network namespace reaches: containers with networks of their own do not see each other's
// CPUs. Two runs may have one name; they are told apart by their processes.
//
// The target ends by itself after Config.Ticks, at the supervisor's word
// (Page.Stop), at SIGTERM and when its policy says so. It outlives the supervisor: at
// each tick it asks the kernel whether that process has ended (Page.Supervisor), and
// then does what the bench says; Attach puts another one in its place. The supervisor
// waits for the end of the loop's thread, of which the kernel itself tells on the page
// (Page.Died).
package bench
