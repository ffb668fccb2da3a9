package kernel

// calls holds the indirect calls of a tick, by phase. New sets them once; no inner loop makes one.
//
// No function of a tick may grow its stack. The linker adds up the frames along each chain of
// direct calls and refuses more than about 800 bytes. An indirect call starts a new chain. doc.go
// states the stack limit of a whole tick. The comment of a field names the reason for its call:
//
//   - limit: a direct call makes the named chain too long;
//   - share: the named chain fits by itself, but not together with its callers or the calls below it,
//     which would be direct as well;
//   - form: New selects the function by the form and the stepping of the plant.
//
// A law or an event indicator (evaluateProgram, argument, execute, sin) takes 330 bytes below its caller.
type calls struct {
	// A step in two parts: the period, the locks at an instant, a micro step.
	// limit: Step, advanceTick, macroStep, a law
	macroStep func(k *Kernel)
	// share: macroStep, updateModes, a law
	updateModes func(k *Kernel, theta float64, iterations int)
	// limit: macroStep, microStep, a law
	microStep func(k *Kernel, s int)
	// limit: microStep, rungeKutta, updateForces, a law
	evaluateOnSides func(k *Kernel, v, x []float64)

	// A quiet tick.
	// share: Step, stepQuiet, holdInputs
	stepQuiet func(k *Kernel, y, u []float64) bool
	// limit, with the race detector: stepQuiet, holdInputs, holdSources, nextChange
	holdInputs func(k *Kernel, u []float64) bool

	// A substep: its signals, the modes at its start, the motion to its end or first event.
	// limit: Step, writeOutputs, writePlantOutputs, setSignalsNow, setSignals, a law
	setSignals func(k *Kernel, x []float64, local, length float64)
	// limit: Step, writeOutputs, advanceTo, startSubstep, a law
	startSubstep func(k *Kernel, local float64)
	// share: Step, writeOutputs, advanceTo, advanceSubstep, locateEvent
	advanceSubstep func(k *Kernel, local float64, locate bool) (theta float64, cause int)
	// share: advanceSubstep, locateEventSparse, locateEvent, firstEvent, prepareIndicator
	locateEvent func(k *Kernel, local float64, locate bool, accuracy int, resume bool) (
		theta float64, cause int, expanded bool)
	// share, limit: Step, writeOutputs, advanceTo, handleEvent, projectLocks, projectState, currentMode
	handleEvent func(k *Kernel, local, theta float64, cause int) bool
	// share: advanceSubstep, stepOverEvents, an event indicator
	stepOverEvents func(k *Kernel, local, theta float64)

	// The motion over a substep, consistent with its laws.
	// form, share: iterateLaws, refineExpansion, expand
	expand func(k *Kernel, x []float64)
	// form, share: locateEvent, repeatUntilConverged, solveLaws, a law
	solveLaws func(k *Kernel)
	// limit: setSignals, startLaws, a law
	solveInstant func(k *Kernel, x []float64)
	// limit: Step, writeOutputs, writePlantOutputs, setSignalsNow, a law
	evaluateDownstream func(k *Kernel, v, x []float64)
	// share: locateEvent, repeatUntilConverged, iterateLaws, a law
	iterateLaws func(k *Kernel, coarse bool)
	// share: iterateLaws, answerTorques, a law
	answerTorques func(k *Kernel, p int)
	// share: iterateLaws, correctExpansion, correctTerm, derive
	correctExpansion func(k *Kernel, change float64)
	// form, share: firstRoot, refineRoot, an event indicator, setTorques
	setTorques func(k *Kernel, x []float64)
	// share: iterateLaws, refineExpansion, addTerm, derive
	derive func(k *Kernel, dst, x, w, tau []float64)

	// The place of an event in a substep.
	// share: locateEvent, mayHoldEvent, an event indicator
	mayHoldEvent func(k *Kernel) bool
	// limit: mayHoldEvent, indicatorsMayPass, an event indicator
	indicatorTurns func(k *Kernel) bool
	// limit: locateEvent, firstEvent, firstRoot, an event indicator
	firstRoot func(k *Kernel, curve int) (theta float64, ok bool)
	// limit: firstEvent, firstRoot, curveAt, a law
	valueOnLaws func(k *Kernel, g int, theta float64) float64
	// limit: firstRoot, countEdges, locateEdge, refineRoot, an event indicator
	refineRoot func(k *Kernel, curve int, a, b, fa, fb float64) float64

	// The modes after an event: the locked elements and their torques.
	// share: Step, writeOutputs, advanceTo, handleEvent, resolveModes, resolveBlock
	resolveModes func(k *Kernel)
	// share: handleEvent, resolveModes, resolveBlock, solveComplementarity
	resolveBlock func(k *Kernel, b int)
	// limit: Step, writeOutputs, advanceTo, handleEvent, projectLocks, projectSlips, solveLockTorques
	solveLockTorques func(k *Kernel, b int, tau []float64)
	// share: Step, writeOutputs, advanceTo, handleEvent, handleImpact, transmitImpacts
	handleImpact func(k *Kernel, i int, local float64) bool
	// limit: Step, writeOutputs, advanceTo, handleEvent, currentMode, factorise, solveLocks
	factorise func(k *Kernel)
	// share: resolveBlock, solveComplementarity, setUnlockedAccel, buildUnlocked
	buildUnlocked func(k *Kernel)

	// The states that are set at a tick.
	// limit: Step, sample, setSignalsNow, a law
	sample func(k *Kernel, start bool)

	// A state at the start of a tick to which no substep has led: Reset, TakeOver.
	// share: TakeOver, settle, updateSides, an event indicator
	settle func(k *Kernel)
	// limit: TakeOver, mustSettle, an event indicator
	mustSettle func(k *Kernel) bool
	// limit: TakeOver, settle, updateSides, an event indicator
	updateSides func(k *Kernel, x, v []float64) bool
	// share: settle, transmitImpacts
	transmitFastest func(k *Kernel)

	// The sensor edges in the part of a substep that was taken.
	// share: advanceSubstep, stepOverEvents, countPulses
	countPulses func(k *Kernel, local, part float64, expanded bool)
	// limit: macroStep, countPath, countEdges, countMonotonic
	countEdges func(k *Kernel, i int, local, part float64)
}

// newCalls returns the calls for the form and the stepping of a plant.
func newCalls(t *Tables) calls {
	c := calls{
		macroStep: (*Kernel).macroStep, updateModes: (*Kernel).updateModes, microStep: (*Kernel).microStep,
		evaluateOnSides: (*Kernel).evaluateOnSides, stepQuiet: (*Kernel).stepQuiet, holdInputs: (*Kernel).holdInputs,
		setSignals: (*Kernel).setSignals, startSubstep: (*Kernel).startSubstep, advanceSubstep: (*Kernel).advanceSubstep,
		handleEvent: (*Kernel).handleEvent,
		locateEvent: (*Kernel).locateEvent, stepOverEvents: (*Kernel).stepOverEvents,
		expand: (*Kernel).expand, solveLaws: (*Kernel).solveLaws, iterateLaws: (*Kernel).iterateLaws,
		solveInstant:       (*Kernel).solveInstant,
		evaluateDownstream: (*Kernel).evaluateDownstream, correctExpansion: (*Kernel).correctExpansion, setTorques: (*Kernel).setTorques,
		derive: (*Kernel).derive, answerTorques: (*Kernel).answerTorques,
		mayHoldEvent: (*Kernel).mayHoldEvent, indicatorTurns: (*Kernel).indicatorTurns,
		firstRoot: (*Kernel).firstRoot, refineRoot: (*Kernel).refineRoot, valueOnLaws: (*Kernel).valueOnLaws,
		resolveModes: (*Kernel).resolveModes, resolveBlock: (*Kernel).resolveBlock,
		solveLockTorques: (*Kernel).solveLockTorques, handleImpact: (*Kernel).handleImpact,
		factorise: (*Kernel).factorise, buildUnlocked: (*Kernel).buildUnlocked,
		settle: (*Kernel).settle, mustSettle: (*Kernel).mustSettle, updateSides: (*Kernel).updateSides, transmitFastest: (*Kernel).transmitFastest,
		sample:      (*Kernel).sample,
		countPulses: (*Kernel).countPulses, countEdges: (*Kernel).countEdges,
	}
	switch {
	case t.Sparse != nil:
		c.expand, c.solveLaws, c.setTorques = (*Kernel).expandSparse, (*Kernel).predictLaws, (*Kernel).setTorquesSparse
	case t.Form == Held:
		c.expand = (*Kernel).expandLine
	}

	return c
}
