// Package gearbox owns the control units of gearboxes: powershift, truck, automated manual, automatic and double-clutch.
// It shares no code with the target.
//
// Reading order: gearbox.go (list of the units), powershift.go (a law of its own; its diagnosis: powershifttrouble.go),
// transmission.go (gears and shifts of the others) with truck.go (SAE J1939), automatic.go (E2E) and eightspeed.go
// (shifts from clutch to clutch), plausibility.go, trouble.go and control.go (their checks, diagnosis and tester),
// trucknode.go (address and diagnosis on SAE J1939) with amt.go and amtshift.go (automated manual gearbox), dct.go and
// dctshift.go (two clutches; diagnosis: dcttrouble.go).
package gearbox

import "lockstep/rt/ecu/unit"

// Types lists the control units of gearboxes.
func Types() []unit.Type {
	automatic := []uint32{idShaftSpeeds, idPedals, idGearboxOil, unit.IDNMBench}
	return []unit.Type{
		{Name: "powershift", Period: cycle, Identifiers: []uint32{idSpeeds, idStatus}, WakeFrame: "Speeds (0x200)", New: newPowershift},
		{Name: "truck", Period: cycle, Identifiers: truckIdentifiers(), WakeFrame: "ShaftSpeeds (0CFF0180)", New: newTruck},
		{Name: "amt12", Period: cycle, Identifiers: truckIdentifiers(idEEC1, idShiftSensors), WakeFrame: "ShaftSpeeds (0CFF0180)", New: newAmt},
		{Name: "automatic", Period: cycle, Identifiers: automatic, WakeFrame: "ShaftSpeeds (0x210)", New: newAutomatic},
		{Name: "hp8", Period: cycle, Identifiers: append(automatic, idEngineTorque), WakeFrame: "ShaftSpeeds (0x210)", New: newEightSpeed},
		{Name: "dct7", Period: cycle, Identifiers: []uint32{idDctSpeeds, idDctRails, idDctDriver, idDctTemperatures, idDctIgnition, idDctEngine, unit.IDNMBench}, WakeFrame: "DctSpeeds (0x220)", New: newDct},
	}
}
