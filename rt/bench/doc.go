// Package bench owns the bench file and the plan that is made of it. Load reads the file;
// Prepare assembles the plant, binds every signal to its port and returns a Handover of plain
// data, which is all that the target process needs.
//
// The package runs nothing: rt/supervisor runs a bench in real time, rt/virtual in virtual
// time. It does not tick (package rt), know the mathematics of a plant (model, model/kernel)
// or speak to a bus (io/can). What is expected of a run is in rt/scenario.
//
// Everything of a bench that can fail, be parsed or be looked up is done here, before the
// start. Errors are "FILE:LINE:COL: bench: ...".
//
// Reading order: file.go (Bench, Load), plant.go (its plant), bus.go (buses, frames, messages),
// protect.go (protected groups, values over time), units.go (units of a database), claim_file.go
// (J1939 addresses), safe.go (safe values, ends of a run), prepare.go (Handover), handover.go (how
// a Handover reaches the target), hash.go (digests of the sources of a run).
//
// # A bus of a bench file
//
// Brackets give the default:
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
// A frame that the bus does not take is sent once more at the next tick, before the others,
// with the values of that tick.
package bench
