package codegen

// blocksText is a plant with signal blocks of every kind of law, heat, oil and electricity: NAME "blocks" of load.
const blocksText = `plant: blocks
inputs:
  v_ref: {unit: m/s, min: 0, max: 40, default: 20}
  air: {unit: degC, min: -30, max: 50, default: 20}
  on: {unit: 1, flag: true, default: 1}
elements:
  motor: {type: inertia, J: 0.3 kg.m2, w_start: 100 rad/s}
  wheel: {type: inertia, J: 0.5 kg.m2}
  roll: {type: ideal_rolling_wheel, a: wheel, b: car, radius: 0.3 m}
  car: {type: mass, m: 20 kg}
  clutch: {type: clutch, a: motor, b: wheel, mu: 0.2, cgeo: 0.5 m, fn: grip, heat_port: plates,
           factor_T: [[0 degC, 1], [100 degC, 0.6]]}
  plates: {type: heat_capacitor, C: 400 J/K, T_start: 20 degC}
  housing: {type: heat_capacitor, C: 4 kJ/K}
  wall: {type: thermal_conductor, port_a: plates, port_b: housing, G: 20 W/K}
  cooling: {type: convection, solid: housing, fluid: air, Gc: {product: [2 W.s/(K.m), v_limited]}}
  glow: {type: body_radiation, port_a: plates, port_b: air, Gr: 0.1 m2}
  v: {type: speed_sensor, flange: car, range: 40 m/s}
  v_limited: {type: limiter, u: v, uMin: 1 m/s, uMax: 30 m/s}
  soft: {type: slew_rate_limiter, u: v_ref, Rising: 20 m/s2, Falling: -30, Td: 20 ms}
  control: {type: lim_pid, u_s: soft, u_m: v, k: 10 N.m.s/m, Ti: 0.5 s, Td: 20 ms, yMax: 60 N.m, yMin: -20}
  drive: {type: torque, flange: motor, tau: engaged}
  fast: {type: hysteresis, u: v, uLow: 12 m/s, uHigh: 15 m/s}
  both: {type: and, u1: fast, u2: on}
  engaged: {type: switch, u1: {product: [0.5, control]}, u2: both, u3: control}
  map: {type: combi_table_1ds, u: v, table: [[0, 300 N], [10, 500], [30, 200]]}
  map2: {type: combi_table_2ds, u1: v_limited, u2: soft,
         table: {u1: [0, 10, 30], u2: [0, 20], y: [[0, 50 N], [80, 100], [60, 20]]}}
  grip: {type: first_order, u: {sum: [map, map2]}, T: 50 ms}
  power: {type: product, u: [control, v_limited]}
  share: {type: division, u1: power, u2: {sum: [v_limited, 1 m/s]}}
  shown: {type: second_order, u: v, w: 30 rad/s, D: 0.5}
  heard: {type: sampler, u: share, samplePeriod: 10 ms}
  kept: {type: zero_order_hold, u: heard_limited}
  heard_limited: {type: limiter, u: heard, uMax: 40 N.m}
  once: {type: unit_delay, u: kept, samplePeriod: 20 ms, y_start: 1 N.m}
  late: {type: fixed_delay, u: v, delayTime: 33 ms}
  later: {type: fixed_delay, u: late, delayTime: 20 ms}
  smooth: {type: discrete_transfer_function, u: late, b: [0.1, 0.05], a: [1, -1.2, 0.35], samplePeriod: 10 ms}
  way: {type: integrator, u: later, reset: fast, set: {sum: [{product: [0.01 s, smooth]}, 0.5 m]}}
  driver: {type: driver, cycle: hwfet, speed: late, preview: 0.3 s}
  pressed: {type: sum, u: [driver.accelerator, driver.brake, driver.lever], k: [1, 3, 10]}
  pushed: {type: force, flange: car, f: {product: [3 N, {sum: [driver.accelerator, {product: [-1, driver.brake]}]}]}}
  valve: {type: hydraulic_actuator, current: {sine: {amplitude: 0.4, offset: 0.5, f: 2 Hz}}, line_pressure: 9 bar, lag: 20 ms,
          hysteresis: 0.5 bar, pressure_map: [[0, 0], [1, 14 bar]], fill_volume: 5 cm3, kiss_pressure: 1 bar,
          stiffness: 2e11, flow: 1e-4}
  hold: {type: brake, flange: wheel, mu: 0.1, cgeo: 0.1 m, area: 1 cm2, pressure: valve, p0: 1 bar}
  oil: {type: clutch_drag, a: motor, b: wheel, surfaces: 4, r_inner: 60 mm, r_outer: 80 mm, gap: 0.3 mm,
        viscosity: [[20 degC, 0.06], [90 degC, 0.01]], oil_flow: 5e-6, heat_port: plates}
  rotor: {type: inertia, J: 0.1 kg.m2, w_start: 80 rad/s}
  dmf: {type: dual_mass_flywheel, a: rotor, b: motor, J_primary: 0.05, J_secondary: 0.05, c: [0, 60, 300],
        borders: [2 deg, 20 deg], hysteresis: [1, 4, 8], hysteresis_w2: 1e-4, phi_stop: 25 deg, restitution: 0.3}
  em: {type: electric_machine, flange: rotor, tau_ref: {sine: {amplitude: 90 N.m, f: 1.5 Hz}}, voltage: cells, lag: 5 ms,
       rate: 3 kN.m/s, tau_map: {w: [0, 100, 300], voltage: [250, 400], tau: [[70, 80], [60, 75], [20, 40]]},
       factor_T: [[20 degC, 1], [80 degC, 0.5]], heat_port: plates, losses: {w: [0, 300], tau: [0, 80], P: [[0, 900], [200, 1500]]}}
  cells: {type: battery, power: em.P_el, U0: [[0, 320], [0.5, 360], [1, 400]], R: 0.5, capacity: 50 A.s}
outputs:
  p_valve: {signal: valve}
  T_hold: {torque: hold}
  T_oil: {torque: oil}
  E_dmf: {energy: dmf}
  D_dmf: {dissipated: dmf}
  T_em: {torque: em}
  U: {signal: cells}
  soc: {state: cells.soc}
  pressed: {signal: pressed}
  target: {signal: driver.target}
  v_car: {speed: car}
  T_plates: {signal: plates, unit: degC}
  T_housing: {signal: housing, unit: degC}
  M: {signal: control}
  M_engaged: {signal: engaged}
  v_shown: {signal: shown}
  share_now: {signal: share}
  once: {signal: once}
  kept: {signal: kept}
  later: {signal: later}
  smooth: {signal: smooth}
  way: {signal: way}
`
