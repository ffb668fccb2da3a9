package codegen

// teethText is a plant whose sleeve engages a dog clutch and a synchroniser: NAME "teeth" of load.
const teethText = `plant: teeth
inputs:
  shift: {unit: N, min: -500, max: 500, default: {table: [[0, 100], [0.1, 100], [0.15, -500], [1, -500]], period: 1 s}}
  pull: {unit: N.m, min: -20, max: 20, default: 2}
elements:
  floor: {type: fixed}
  lay: {type: inertia, J: 0.5 kg.m2, w_start: 20 rad/s}
  wheel: {type: inertia, J: 0.02 kg.m2}
  idle: {type: inertia, J: 0.02 kg.m2}
  drive: {type: torque, flange: wheel, tau: pull}
  collar: {type: mass, m: 0.5 kg, s_start: 0 m}
  fork: {type: force, flange: collar, f: shift}
  rails: {type: damper, a: floor, b: collar, d: 500 N.s/m}
  ends: {type: clearance, a: floor, b: collar, s_min: -10 mm, s_max: 8 mm}
  dogs: {type: dog_clutch, a: lay, b: wheel, sleeve: collar, teeth: 36, radius: 40 mm,
         backlash: 0.8 deg, flat: 2 deg, chamfer: 1 mm, taper: 3 deg, s_contact: 3 mm, mu: 0.1}
  sync: {type: synchroniser, a: lay, b: idle, sleeve: collar, J: 2e-3 kg.m2, teeth: 36,
         radius: 40 mm, backlash: 0.8 deg, chamfer: 3 mm, index: 2.5 deg, s_ring: -1 mm,
         s_contact: -5 mm, reversed: true, mu_cone: 0.1, cgeo: 0.4 m,
         detent: [[-3 mm, 0 N], [-1 mm, 60 N], [0 mm, 0 N]]}
outputs:
  w: {w_rel: dogs}
  s: {position: collar}
  phi: {signal: dogs.phi}
  phi_ring: {signal: sync.phi_ring}
  loss: {signal: sync.lossPower}
`
