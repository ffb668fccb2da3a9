// Package plantfile owns the language of plant files: Load makes the network of a plant of
// one. It does not know the element types, which are passed to it (model/library lists
// them), and does not make matrices of the network: model/assemble does.
//
// Everything is SI inside; a file may write units, which are checked and converted when it
// is read. An error names its place in the file: FILE:LINE:COL.
//
// # The plant file
//
// YAML, in these sections:
//
//	plant: NAME
//	about: one line
//	parameters: {J_wheel: 1.2 kg.m2, i1: 75/50}             # each may use those above
//	inputs:     {NAME: {unit: bar, min: 0, max: 40, default: VALUE, delay: 5 ms}}
//	assemblies: {NAME: {parameters, signals, flanges, elements}}
//	elements:   {NAME: {type: TYPE, ...}}
//	outputs:    {NAME: {speed: NODE}}
//	partition:  {N_sub: 5, N_iter: 1}      # the plant in two parts, see below
//
// A number is written "3", "120 rpm", "75/50", "2*J_wheel", "-r1/r2" or "(1 + k)*5 bar":
// numbers with or without a unit, parameters and pi, + - * / and parentheses. Without
// any unit it is SI; inside an input it is in the input's unit. A "/" or "." right after
// a unit, without a blank, belongs to it when a unit follows: "5 m/s", but "5 m / s"
// divides by a parameter s. A temperature is in K, or alone in degC: "20 degC".
//
// Quote what YAML reads otherwise: unit: "%". A file has at most 256 KiB and 2000 elements.
//
// # Nodes
//
// An inertia, a mass, a vehicle is the node of its own name, and so is fixed. Any other
// name given as a flange is a massless node, such as a gear wheel running loose on a
// shaft: gears must determine its speed, or springs and dampers; friction acts only
// where gears do. A node turns or moves, as its owner and the elements on it say; an
// element that joins the two is refused. Redundant gears are dropped if they agree.
//
// # Values over time
//
// The default of an input, tau, fn, pressure and the like are a number, or one of
//
//	{table: [[t, v], ...]}           linear between its rows, constant outside, two rows
//	                                 of equal time being a jump; with held: true a
//	                                 staircase; period: T repeats it, from startTime on
//	{step: {height, offset, startTime}}
//	{ramp: {height, duration, offset, startTime}}
//	{sine: {amplitude, f, phase, offset, startTime}}
//	{pulse: {amplitude, width (% of the period), period, nperiod, offset, startTime}}
//	{trapezoid: {amplitude, rising, width, falling, period, nperiod, offset, startTime}}
//	{sum: [VALUE, ...]}, {product: [VALUE, ...]}
//
// meant as in Modelica.Blocks.Sources; offset, startTime and phase are 0, nperiod -1 (for
// ever) if they are left out. In elements it is also the name of an input, or of an
// element that has a signal. Of a product the first factor has the unit that the others
// leave over: {product: [-2 N.m.s/rad, w]} with a speed_sensor w.
//
// What an element exerts is a signal as well, NAME.f where it moves and NAME.tau where it
// turns, with the sign of {force: NAME}; NAME.share is the part of its capacity that a
// clutch or brake exerts, -1 to 1 while it slips: {product: [block, brake.share]} is what
// a brake block rubs. The element may stand below.
//
// # Elements
//
// Elements and parameters are named after Mechanics.Rotational and .Translational of the
// Modelica Standard Library where it has them; of a parameter "= x" is the default. With
// w_rel = w_b - w_a and phi_rel likewise, tau > 0 in the direction of w_rel: flange b
// (flange of an element with a support) gets -tau, flange a (support) +tau. Of sources
// and loads tau accelerates the flange. A support left out is ground.
//
// What stores or stretches:
//
//	inertia         J; w_start = 0, phi_start
//	mass            m; v_start = 0, s_start
//	fixed           phi0, s0
//	damper          a, b, d                          tau = d·w_rel
//	spring          a, b, c; phi_rel0 = 0, phi_rel_start (from the angles where they are
//	                given, otherwise phi_rel0)       tau = c·(phi_rel - phi_rel0)
//	spring_damper   as both; on moving nodes all three with s_rel0, s_rel_start
//	elasto_backlash a, b, c, d, backlash; as spring  total gap backlash, b in the library
//	elasto_backlash2  the same, with a jump at the contact
//	elasto_gap      a, b, c, d; s_rel0 = 0           pushes while s_rel < s_rel0
//	clearance       a, b, phi_min, phi_max; restitution = 0, phi_rel_start, k_s = 1; on moving
//	                nodes s_min, s_max, s_rel_start  phi_min <= phi_rel <= phi_max
//	affine_spring   a, b, c, borders; symmetric = true, offsets, hysteresis, d; as spring
//	affine_damper   a, b, d, borders; symmetric = true, offsets
//	deflection_damper  a, b, d_delta; d = 0, phi_range = 1; as spring
//	                tau = (d + d_delta·|phi_rel - phi_rel0|)·w_rel
//
// An affine_spring is tau = c[i]·x + offsets[i] with x = phi_rel - phi_rel0 in region i, an
// affine_damper tau = d[i]·w_rel + offsets[i] (Reiter, Nonlinear elements in drivetrain
// simulation, eq. 28 and 34). Between the borders lies one region more than there are
// borders; they are those of |x| with both sides alike, or with symmetric: false from the
// left to the right. Offsets are computed: tau is continuous, and 0 at x = 0; given ones
// must be continuous, the first of symmetric ones 0. hysteresis is the width of the loop
// between loading and unloading, one for all regions or one for each: friction of half of
// it, and the spring is then a friction element too, NAME.tau being that part of its
// torque. d is the damping beside it, one value or one for each region, and a law where
// they differ. Each has an output NAME.region, counted from 0. A deflection_damper is a law;
// phi_range (s_range) is the deflection up to which the step is made short enough for it.
//
// A clearance is play with rigid stops at one end or both: friction elements NAME.min and
// NAME.max whose mode is 2 while they are apart and 0 in contact, with a torque that only
// pushes. A stop is hit with an impact: w_rel turns to -restitution·w_rel (0: plastic, 1:
// elastic), by an impulse on the inertias at its two ends and what is geared to them
// (Reiter, eq. 107 and 108). It goes on through contacts and freewheels that are closed;
// friction and springs transmit none. The plant must start between the stops. k_s is the
// extra loss of the thesis (eq. 128): in contact the body that pushes the other along gets
// k_s times the force that the other gets. Action is not reaction then, and momentum is
// not kept: what is not 1 is not physical.
//
// Gears:
//
//	ideal_gear          a, b, ratio; support         w_a = ratio·w_b, relative to support
//	lossy_gear          the same; lossTable = [[0, 1, 1, 0, 0]]
//	ideal_planetary     sun, carrier, ring, ratio; planets = single
//	                    (1 + ratio)·w_carrier = w_sun + ratio·w_ring; planets: double for
//	                    (1 - ratio)·w_carrier = w_sun - ratio·w_ring
//	ravigneaux          sun_small, sun_large, carrier, ring, ratio_small, ratio_large
//	differential        drive, left, right; ratio = 1    w_drive = ratio·(w_left + w_right)/2
//	ideal_rolling_wheel a, b, radius; support_r, support_t   w_a·radius = v_b
//	ideal_gear_r2t      a, b, ratio; the same            w_a = ratio·v_b
//
// The lossTable of a lossy_gear has rows [|w_a|, eta_mf1, eta_mf2, tau_bf1, tau_bf2]:
// the efficiency while flange a drives, while flange b does, and the bearing friction
// in both cases, on the side of a. It is a friction element between flange a and the
// support; its torque is the loss, with the torque tau_a into flange a while w_a > 0
//
//	tau = max((1 - eta_mf1)·tau_a + tau_bf1, (1 - 1/eta_mf2)·tau_a + tau_bf2)
//	0 = tau_b + ratio·(tau_a - tau)
//
// and it sticks at w_a = 0. With eta_mf2 = 0 flange b cannot drive: a worm gear. The
// table goes on like its last two rows until an efficiency has halved or reached 1, or
// a torque has reached 0. Gears with small efficiencies are refused where too much
// comes back to them through other friction elements.
//
// Friction:
//
//	clutch          a, b, mu or mu_pos, cgeo; peak = 1     |tau| <= mu·cgeo·fn
//	                with fn, or fn_max, f_normalized, or area, pressure; p0 = 0
//	brake           flange, as clutch; support             w_rel = w_flange - w_support;
//	                on a moving node cgeo is a number, = 1
//	one_way_clutch  as clutch: a freewheel with a clutch beside it, w_rel >= 0; peak = 1.0001
//	freewheel       a, b                                   w_rel >= 0
//	bearing_friction  flange, tau_pos; peak = 1; support; or tau_Coulomb, tau_Stribeck = 0,
//	                fexp, tau_prop = 0; peak = 1.001:
//	                tau_Coulomb + tau_Stribeck·exp(-fexp·|w|) + tau_prop·|w|
//	support_friction  the same on a moving node: f_pos, f_Coulomb, ...
//
// mu_pos and tau_pos are rows [slip, value] from slip 0 on, extended by their last two.
// A one_way_clutch without normal force still holds 1e-4·mu·cgeo·fn_max forward, where
// fn_max is given.
//
// The normal force of a clutch follows from its pressure as in section 5 of Morselli,
// Zanasi, Ferracin, Modeling and Simulation of Static and Coulomb Friction in a Class of
// Automotive Systems (2005): fn = area·max(0, pressure - p0), and cgeo = n_c·r_m, friction
// surfaces times mean radius. The capacity is mu·cgeo·fn while it slips and peak times
// that while it is stuck; the paper's tangential force is K = capacity/r_c at the radius
// r_c of the wheel beside the clutch.
//
// Bodies in the plane, with x to the front, y upwards, phi from x to y:
//
//	body            dof = [x, y, phi]; m, J as far as they are in it; nodes: {NAME: [x, y]}
//	                from the centre; x_start, y_start, phi_start, v_x_start, v_y_start,
//	                w_start; g: its weight m·g, left out where y counts from the rest
//	line            a, b; angle                      a node: the distance of two points
//	translational_joint  a, b, angle; rotation = free (or locked)
//	                b slides along an axis of body a
//
// A body car has the flanges car.x, car.y (they move) and car.phi (it turns), and each of
// its nodes two, car.rear.x and car.rear.y, that follow rigidly (Gyebroszki, Efficient
// numerical time-domain simulation of rail vehicles with coupled simulator systems, ch. 1):
//
//	x_node = x - y_rel·phi        y_node = y + x_rel·phi
//
// linear about phi = 0. Every element between nodes takes them: spring_damper, clearance,
// force, position_sensor, tyre; force_sensor joins two. What is not in dof is fixed, and a
// body with dof: [] is a place on the ground. A coordinate with a start is a place in the
// plane and counts the offsets of the nodes as well; without one it is a displacement from
// where the vehicle stands, and springs start relaxed. A distance between the two is
// refused where offsets make a difference. Nothing but its own starts turns a body. As phi
// turns against a wheel that rolls to the front, the wheel of an axle is an inertia of its
// own; an ideal_rolling_wheel joins it with AXLE.x.
//
// Buffers and chains, whichever of them act (Gyebroszki, section 4.2), are springs with
// regions between two cars,
//
//	chain:   {type: affine_spring, a: rear.x, b: front.x, symmetric: false, borders: [0], c: [0, 8e6], s_rel0: slack}
//	buffers: {type: affine_spring, a: rear.x, b: front.x, symmetric: false, borders: [0], c: [2e5, 0], d: [3e5, 0]}
//
// or, with plates that push and never pull, those of the plant buffers.
//
// A line is for what acts along neither axis: {type: spring_damper, a: ground, b: link}
// with a fixed node ground pulls the two points of link together. Its speed is that at
// which they part, its position their distance; a force on it pushes them apart. a and b of
// line and joint are a body (its centre) or a node of one. The line keeps the direction
// that it has at the start, or angle, so a preload has no stiffness across it. The axis of a
// joint turns with body a; its force is across the axis. A joint that takes nothing
// more from the bodies is refused, and one that leaves a body no motion at all. Inside an
// assembly, a flange may be handed a body or a node of one: hook.x is then its flange.
//
// The tyre:
//
//	tyre            a (wheel), b (vehicle), radius, fn; friction = 1; and either
//	                mu; peak = 1                     |f| <= mu·fn·friction
//	                or B, C, D, E; S_h = 0, S_v = 0; v_low = 1, or relaxation with
//	                damping = 20 ms, v_range = 50; signal NAME.slip
//
// It slips with v_s = radius·w_a - v_b, v_rel of it; its force drives the vehicle and brakes
// the wheel. A vehicle that turns with the wheel has no radius, and all of it is in rad
// and N.m. With mu it is a friction element, a clutch to the road (Reiter, ch. 5). With the
// magic formula (eq. 135 to 138; Pacejka)
//
//	f = friction·fn·D·sin(C·atan(B·kappa - E·(B·kappa - atan(B·kappa)))) + S_v
//	kappa = v_s/max(|v_b|, v_low) + S_h
//
// where B, C, D and E are numbers or tables of rows [fn, value]; friction and fn are values
// over time. Near standstill the slip needs a relaxation length (m, 0.1 to 0.7 of cars):
//
//	kappa = v_s/u + S_h,  u = max(|v_b|, |v_s|)
//	k' = min(p, v_range)/relaxation·(g - k),  p = u·kappa/g
//	f = friction·fn·B·C·D·(k + lead·(g - k)) + S_v,  lead = min(1, max(damping·k'/(g - k), 1 - v_range/p))
//
// where friction·fn·B·C·D·g is the formula at kappa: at rest a spring and a damper to the
// road, at speed the formula itself. The more a tyre slips the shorter it relaxes, so that
// the tread holds no more than the force (Pacejka, Tyre and Vehicle Dynamics, ch. 7: fully
// non-linear), and a car that stops on locked wheels does not jump back.
//
// Wheel and rail:
//
//	rail_contact    a (wheel), b (axle), radius, fn, law; friction = 1, way = [[0, 1]]
//	  gyebroszki        mu0, A, v_star; T_sgn = 0, peak = 1
//	                    |f| <= mu0·((1 - A)·exp(-|v_s|/v_star) + A)·N
//	  curtius_kniffler  T_sgn = 0, peak = 1          |f| <= (7.5/(3.6·|v_b| + 44) + 0.161)·N
//	  polach            mu0, A, C, a_ellipse, b_ellipse; B = 0, k_A = 1, k_S = 0.4, v_low = 3
//	                    f = 2/pi·mu·N·(k_A·e/(1 + (k_A·e)²) + atan(k_S·e))
//
// with v_s = radius·w_a - v_b, v_rel of it, and its sign that of f, which drives the
// vehicle and brakes the wheel, as of a tyre; a wheel that moves with its rim has no radius.
// N = max(0, fn)·friction·way: friction is a value over time, way rows [position, factor]
// of the axle. fn adds up what presses the wheel down, also what follows from the motion,
// {sum: [108 kN, primary.f, {product: [-1, block.f]}]}; it is the signal NAME.fn. Of what the
// contact, a tyre or a brake exerts itself it may take less than 1 over the friction; more
// would jam, and is refused.
//
// Without T_sgn the contact is a friction element: a wheel that rolls has no slip, and it
// breaks away and catches in events (peak is static over sliding friction). With T_sgn, m/s,
// the force is v_s/T_sgn of the largest one while |v_s| < T_sgn (Gyebroszki, eq. 6.5.1 to
// 6.5.4), a law that the step has to follow: the smaller T_sgn, the shorter its pieces.
// Curtius and Kniffler (Elektrische Bahnen, 1944) give the adhesion of dry rail over the
// speed. Polach (Creep forces in simulations of traction vehicles running on adhesion
// limit, Wear 258, 2005):
//
//	mu = mu0·((1 - A)·exp(-B·|v_s|) + A)
//	e = 2/3·C·pi·a_ellipse²·b_ellipse·v_s/(mu·N·max(|v_b|, v_low))
//
// with the half axes of the contact, m, along and across the rail, its stiffness C, N/m3
// (3/8·G·c11/a_ellipse of Kalker's theory: 2e13 for steel), and k_A and k_S, at most 1, for
// what dirt takes from adhesion and slip. The force follows the slip by up to
// 0.4·(k_A + k_S)·C·a_ellipse²·b_ellipse·pi/v_low: the smaller v_low, the shorter the pieces.
//
// Sources and loads:
//
//	torque, force   flange, tau (f); support
//	harmonic_torque flange, tau, orders; phi_rel_start, w_max = 650, support
//	                tau·(1 + sum of amplitude·sin(order·phi_rel)), rows [order, amplitude];
//	                w_max is the speed up to which the step is made short enough for it
//	speed           flange, w_ref (v_ref); exact = false, f_crit = 50 Hz; support
//	position        flange, phi_ref (s_ref); the same
//	linear_speed_dependent_torque     flange, tau_nominal, w_nominal; support
//	quadratic_speed_dependent_torque  the same      tau = tau_nominal·(w/w_nominal)²·sign(w)
//	linear_, quadratic_speed_dependent_force        f_nominal, v_nominal
//	eddy_current_torque  flange, tau_nominal, w_nominal; excitation = 1, alpha20 = 0,
//	                TRef = 293.15 K, C, T_start, G = 0, T_ambient; signals NAME.lossPower, .T
//	engine          flange, full_load with drag and throttle, or map with throttle; on = 1,
//	                override with override_mode (0 and 1: off, 2: instead of the throttle,
//	                3: at most, as TSC1 of SAE J1939),
//	                lag = 0, tau_start, idle_speed with idle_gain and idle_torque,
//	                limit_speed; limit_range
//	torque_converter  impeller, turbine, lambda or K, ratio; w_max; signals NAME.tau_pump,
//	                .tau_turbine; a lock-up clutch is a clutch beside it
//	vehicle         flange, m, R; A, Cd, rho = 1.2, Cr, g, inclination, wind, v_start; a mass
//	                on wheels, and a node; NAME is its rolling friction; signals NAME.f_air,
//	                .f_slope
//
// A speed or position source with exact: true is followed to rounding, a sine to what it is
// more than parabolas over pieces of a step; it must not jump. Otherwise a low-pass of f_crit
// makes it smooth, as in the library. The engine's full_load and drag are rows [speed,
// torque], throttle blends between them; map is {w: [...], throttle: [...], tau: [[...],
// ...]}, a row per speed. lambda, K and ratio are rows over nu = w_turbine/w_impeller:
// tau_pump = lambda·w_impeller², lambda = 1/K²; tables that end at 1 or before are
// mirrored there.
//
// Signals:
//
//	hydraulic_actuator  current, pressure_map; lag = 0; fill_volume with fill_pressure,
//	                kiss_pressure, stiffness, flow (at 1 bar), flow_range; its signal is the
//	                pressure at the piston. Its dead time is the delay of the input.
//	wheel_brake_circuit  master, A_inlet, A_outlet, and stiffness with V0 = 0, or p_V;
//	                inlet = 0 (1 closes it), outlet = 0 (1 opens it), drain = 0, A_check = 0
//	                with p_check = 0.1 bar, C_d = 0.7, rho = 1050 kg/m3, p_transition = 1 bar,
//	                V_start = 0; its signal is the pressure in the caliper, signals NAME.Q_in,
//	                .Q_out, state NAME.V
//	low_pressure_accumulator  p_V; pump and flow, p_suction = 1 bar, V_start = 0; its signal
//	                is its pressure, signal NAME.Q_pump, state NAME.V
//	brake_cylinder  demand, T_fill, T_vent; hold = 0 (1 closes it off), vent = 0 (1 empties
//	                it), T_release = T_vent, p_start = 0; its signal is its pressure, state
//	                NAME.p
//	position_table  flange, table; a value along the way, rows [position, value], constant
//	                before and after them
//	speed_sensor, angle_sensor, position_sensor   flange; support; range
//	torque_sensor, force_sensor, power_sensor     a, b: what goes from a to b, which they
//	                join rigidly; range
//
// Where a product, a tyre or a contact follows the motion the more steeply the larger a
// signal is, the step is made short enough for what is known of that: the limits of an
// input, the values of a source, otherwise its value where the plant starts, at least 1.
// What a sensor reads may grow beyond that: range is the size up to which it counts.
//
// A wheel_brake_circuit is the brake of one wheel with the valves of an anti-lock brake,
// whose commands are shares of 0 to 1, duty cycles for instance; their dead time is the
// delay of the inputs. With p(V) rows of p_V, or stiffness·max(0, V - V0),
//
//	V' = Q_in - Q_out
//	Q_in = Q((1 - inlet)·A_inlet, master - p) + Q(A_check, min(0, master - p + p_check))
//	Q_out = Q(outlet·A_outlet, p - drain)
//	Q(A, dp) = C_d·A·sqrt(2/rho)·dp/(dp² + p_transition²)^(1/4)
//
// which is the turbulent flow through an orifice above p_transition, and a laminar one
// below, since the root has no bounded slope at 0. An accumulator named as drain is filled
// by what comes out, and emptied by flow·pump·min(1, p/p_suction).
//
// A brake_cylinder is that of a wheelset behind the two magnet valves of a wheel slide
// protection, shares of 0 to 1 as well; without current it follows what the brake asks for:
//
//	p' = (1 - hold)·(1 - vent)·(demand - p)/T - vent·p/T_vent
//
// with T = T_fill where the demand is above p, otherwise T_release. A brake with area and
// pressure makes a force of it. With a position_table rise of the flange car.x the track
// pulls at the car with {product: [-m*g, rise]}, and friction of a rail_contact may be one.
//
// # Assemblies
//
// An assembly is a group of elements that is used like an element type, as often as
// needed:
//
//	assemblies:
//	  wheel_end:
//	    parameters: {J: 1.2 kg.m2, mu:}     # with a default, or without one
//	    signals: [p]                        # values over time that a use hands in
//	    flanges: [axle]                     # names of nodes outside
//	    elements: {rim: {type: inertia, J: J}, ...}
//	elements:
//	  left: {type: wheel_end, axle: shaft_l, p: brake.pressure, mu: 0.4}
//
// Its elements and nodes are then called left.rim. It sees its own parameters and those
// of the file.
//
// # Outputs
//
//	{speed: NODE}, {acceleration: NODE}, {angle: NODE}, {position: NODE}
//	{w_rel: ELEMENT}, {phi_rel: ELEMENT}    v_rel and s_rel where it moves
//	{torque: ELEMENT}                       its own tau; force where it moves; of an inertia
//	                                        what accelerates it
//	{torque: [ELEMENT, ...], onto: NODE}    what they exert on that node together, gears too
//	{power: ELEMENT}                        tau·w_rel
//	{signal: NAME}                          an input, or the signal of an element, in SI
//	{state: NAME}                           a state of an element, such as valve.p_valve
//	{pulses: NODE, teeth: NUMBER}           a wheel-speed sensor; runout = 0
//
// each but the last with factor: NUMBER, per: QUANTITY (it is a share of that, without a unit), min and
// max beside it. An angle is a state only where it is
// read. The torque of a speed source is what it takes to drive its nodes. What gears
// exert follows from the balance J·w' = F + Cᵀ·lambda of the nodes, where their rows are
// C·w = 0; in a closed loop of gears it is not determined, and refused.
//
// Pulses are three outputs: NAME, the number of edges since the start; NAME.age, the time
// from the last edge to the grid time, s; and NAME.period, the time between the last two.
// The instants are those at which the angle passes the edges, within the tick, not what a
// line between ticks would make of them; edges are no events and change nothing. A node
// that turns teeth·n times in a second, either way, gives so many edges: as a passive
// sensor does, the count goes up in both directions and does not tell which. Before the
// first edge the age counts from the start, and the period is 0 until there are two; at
// rest the age grows and the rest stays. From angle 0 the first edge is half a pitch away
// on either side, and edge i is off its place by runout·sin(2·pi·i/teeth) of a pitch (0 to
// 0.5), as of a ring that does not run true.
//
// A count has no end here; a signal on a bus carries its remainder: of the values that it
// can have, which are 2^bits, or as many as the database's range allows. An age or period
// that is longer than its signal holds stays at the signal's largest value. Neither is a
// value out of range. From one frame to the next a receiver has the speed
//
//	(count₂ - count₁)·2·pi/teeth / (time₂ - age₂ - (time₁ - age₁))
//
// # Partition
//
// With a section partition the plant is stepped in two parts (Gyebroszki, Efficient
// numerical time-domain simulation of rail vehicles with coupled simulator systems, ch. 6
// and 7): a linear one by one exact step of the period, and what friction and laws alone
// turn, such as wheels, by N_sub = 1 micro steps of it (1 to 20). N_iter = 0 additional
// iterations (0 to 5) refine it: without any, the linear part sees what the wheels and
// sources exert as it was at the start of the period, with some as a straight line over
// it. It costs the same in every tick and locates no event: a wheel stops, or turns again,
// at a micro step. Pulses are counted on the cubic through angles and speeds at both ends
// of a period, or of a micro step. Without the section events are located, which is more exact by orders
// of magnitude. Lockstep check refuses what takes longer than a tick may, and warns of micro
// steps longer than 2.8 times the time in which the laws let the active part decay: 6 ms for
// the wheels of rail17. With longer ones they slip where they would roll.
package plantfile
