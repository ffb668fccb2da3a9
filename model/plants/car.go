package plants

import "strings"

// carName is the name of a plant that is made from another: automatic4 with the temperature of its oil.
const carName = "automatic-car"

// carHead replaces the comment, the name and the line about automatic4.
const carHead = `# Car with automatic gearbox: automatic4 with the temperature of its oil.
#
# The losses of the converter, the clutches and the brakes of the gearbox heat the oil, which the
# ambient air cools. Read T_oil, too; set the temperature of the air by ambient. Everything else, and
# the page of the bench, is as in automatic4, but for the driver: as long as nobody drives, the foot is
# off the throttle and the lever in P. The car stands, and its engine idles.
#
#   lockstep sim automatic-bench -cycle wltc-3b -start T_oil=-10degC -out out.csv
#
# starts cold and drives a cycle with it.

plant: automatic-car
about: Car with automatic gearbox, converter and oil that warms up
`

// carEdits are the changes of automatic4: a line, and the line that replaces it.
var carEdits = strings.NewReplacer(
	"\ninputs:\n", "\ninputs:\n  ambient: {unit: degC, min: -40, max: 60, default: 20}\n",
	"throttle: {unit: 1, min: 0, max: 1, default: 1}", "throttle: {unit: 1, min: 0, max: 1}",
	"lever: {unit: 1, min: 0, max: 3, default: 3}", "lever: {unit: 1, min: 0, max: 3}",
	"\nstart:\n", "\nstart:\n  T_oil: {unit: degC, min: -40, max: 180, set: {oil.T_start: T_oil}}\n",
	"    type: torque_converter\n", "    type: torque_converter\n    heat_port: oil\n",
	"pressure: C1.pressure}", "pressure: C1.pressure, heat_port: oil}",
	"pressure: C2.pressure}", "pressure: C2.pressure, heat_port: oil}",
	"pressure: C3.pressure}", "pressure: C3.pressure, heat_port: oil}",
	"pressure: C4.pressure}", "pressure: C4.pressure, heat_port: oil}",
	"pressure: C5.pressure}", "pressure: C5.pressure, heat_port: oil}",
	"pressure: RC.pressure}", "pressure: RC.pressure, heat_port: oil}",
	"\noutputs:\n", `
  # Oil with the metal that it wets: 6 kg of 2 kJ/(kg.K) and 9 kg of 0.45 kJ/(kg.K). The cooler is that of
  # a gearbox without a pump for its oil.
  oil: {type: heat_capacitor, C: 16 kJ/K, T_start: 20 degC}
  cooler: {type: thermal_conductor, port_a: oil, port_b: ambient, G: 25 W/K}

outputs:
  T_oil: {signal: oil, unit: degC}
  P_cooler: {signal: cooler.Q_flow}
`)

// carOf returns the file automatic-car; nil for another name.
func carOf(name string) []byte {
	if name != carName {
		return nil
	}
	text, _ := files.ReadFile("automatic4.yaml") // embedded files can always be read
	_, body, _ := strings.Cut(string(text), "\nparameters:\n")
	return []byte(carHead + "\nparameters:\n" + carEdits.Replace(body))
}
