// Package model owns what a plant is: its file, its elements and connections, their
// check, and their assembly to matrices. It does not discretise, step or know about
// buses.
//
// Everything is SI inside; a file may write units, which are checked and converted
// when it is read. Load reads, Assemble makes the System that model/kernel takes.
//
// # The plant file
//
// YAML, in these sections:
//
//	plant: NAME
//	about: one line
//	parameters: {J_wheel: 1.2 kg.m2, i1: 75/50}             # each may use those above
//	inputs:     {NAME: {unit: bar, min: 0, max: 40, default: VALUE}}
//	elements:   {NAME: {type: TYPE, ...}}
//	outputs:    {NAME: {speed: NODE}}
//
// A number is written "3", "120 rpm", "75/50", "2*J_wheel", "-r1/r2" or "(1 + k)*5 bar":
// numbers with or without a unit, parameters and pi, + - * / and parentheses. Without
// any unit it is SI; inside an input it is in the input's unit. A "/" or "." right after
// a unit, without a blank, belongs to it when a unit follows: "5 m/s", but "5 m / s"
// divides by a parameter s.
//
// Quote what YAML reads otherwise: unit: "%". A file has at most 256 KiB and 500 elements.
//
// A value over time (the default of an input, tau, fn, pressure) is a number, a table
// {table: [[t, v], ...]}, linear between its rows, constant outside, two rows of equal
// time being a jump; in elements also the name of an input.
//
// An inertia is the node of its own name, and so is fixed. Any other name given as a
// flange is a massless node, such as a gear wheel running loose on a shaft; gears must
// determine its speed. Elements and parameters are named after Mechanics.Rotational of
// the Modelica Standard Library where it has them:
//
//	inertia        J; w_start = 0
//	fixed
//	damper         a, b, d                          tau = d·w_rel
//	spring         a, b, c; phi_rel0 = 0,           tau = c·(phi_rel - phi_rel0)
//	               phi_rel_start = phi_rel0
//	spring_damper  as both
//	ideal_gear     a, b, ratio; support             w_a = ratio·w_b, relative to support
//	clutch         a, b, mu, cgeo; peak = 1         |tau| <= mu·cgeo·fn
//	               with fn, or area, pressure; p0 = 0
//	brake          flange, as clutch; support       w_rel = w_flange - w_support
//	torque         flange, tau; support             tau accelerates flange
//
// With w_rel = w_b - w_a and phi_rel likewise, tau > 0 in the direction of w_rel: flange
// b (flange of a brake) gets -tau, flange a (support) +tau. A support left out is ground.
//
// The normal force of a clutch follows from its pressure as in section 5 of Morselli,
// Zanasi, Ferracin, Modeling and Simulation of Static and Coulomb Friction in a Class of
// Automotive Systems (2005): fn = area·max(0, pressure - p0), and cgeo = n_c·r_m, friction
// surfaces times mean radius. The capacity is mu·cgeo·fn while it slips and peak times
// that while it is stuck; the paper's tangential force is K = capacity/r_c at the radius
// r_c of the wheel beside the clutch.
//
// Outputs are
//
//	{speed: NODE}                         rad/s
//	{w_rel: ELEMENT}, {phi_rel: SPRING}   rad/s, rad
//	{torque: ELEMENT}                     tau of a spring, damper, clutch, brake or torque; N.m
//	{torque: [ELEMENT, ...], onto: NODE}    what they exert on that node together; N.m
//	{signal: INPUT}                       the input itself, in SI
package model
