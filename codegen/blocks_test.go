package codegen

// blocksText is a plant with signal blocks of every kind of law, and heat: NAME "blocks" of load.
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
outputs:
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
