/* The plant as FMI 3.0 sees it, for co-simulation. */
#include "fmi-plant.h"
#define CATEGORY "logStatusError"
#include "fmi-slave.h"

typedef void *fmi3Instance, *fmi3InstanceEnvironment, *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef float fmi3Float32;
typedef double fmi3Float64;
typedef int8_t fmi3Int8;
typedef uint8_t fmi3UInt8;
typedef int16_t fmi3Int16;
typedef uint16_t fmi3UInt16;
typedef int32_t fmi3Int32;
typedef uint32_t fmi3UInt32;
typedef int64_t fmi3Int64;
typedef uint64_t fmi3UInt64;
typedef bool fmi3Boolean, fmi3Clock;
typedef char fmi3Char;
typedef const fmi3Char *fmi3String;
typedef uint8_t fmi3Byte;
typedef const fmi3Byte *fmi3Binary;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef enum { fmi3Independent, fmi3Constant, fmi3Fixed, fmi3Tunable, fmi3Discrete, fmi3Dependent } fmi3DependencyKind;
typedef enum { fmi3IntervalNotYetKnown, fmi3IntervalUnchanged, fmi3IntervalChanged } fmi3IntervalQualifier;

typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String category, fmi3String message);
typedef void (*fmi3ClockUpdateCallback)(fmi3InstanceEnvironment);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, fmi3Float64 at, fmi3Boolean set, fmi3Boolean get, fmi3Boolean finished, fmi3Boolean canReturn, fmi3Boolean *early, fmi3Float64 *earlyTime);
typedef void (*fmi3LockPreemptionCallback)(void);
typedef void (*fmi3UnlockPreemptionCallback)(void);

static void say(const instance *s, const char *line)
{
	if (s->logger != NULL)
		((fmi3LogMessageCallback)s->logger)(s->environment, fmi3Error, CATEGORY, line);
}

EXPORT const char *FMI(fmi3GetVersion)(void)
{
	return "3.0";
}

EXPORT fmi3Status FMI(fmi3SetDebugLogging)(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String category[])
{
	(void)on;
	return (fmi3Status)categories(c, "fmi3SetDebugLogging", n, category);
}

/* none is what an instantiation gives that cannot be: it says why. */
static fmi3Instance none(fmi3LogMessageCallback logger, fmi3InstanceEnvironment environment, const char *trouble)
{
	if (logger != NULL)
		logger(environment, fmi3Error, CATEGORY, trouble);
	return NULL;
}

EXPORT fmi3Instance FMI(fmi3InstantiateModelExchange)(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger)
{
	(void)name, (void)token, (void)resources, (void)visible, (void)logging;
	return none(logger, environment, "the plant is for co-simulation only");
}

EXPORT fmi3Instance FMI(fmi3InstantiateScheduledExecution)(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3ClockUpdateCallback update, fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock)
{
	(void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)update, (void)lock, (void)unlock;
	return none(logger, environment, "the plant is for co-simulation only");
}

EXPORT fmi3Instance FMI(fmi3InstantiateCoSimulation)(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference intermediate[], size_t n, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3IntermediateUpdateCallback update)
{
	const char *trouble = misnamed(name, token);
	(void)resources, (void)visible, (void)logging, (void)early, (void)intermediate, (void)n, (void)update;
	if (trouble == NULL && events)
		trouble = "the plant has no event mode";
	if (trouble != NULL)
		return none(logger, environment, trouble);
	instance *s = create(name, environment, (void (*)(void))logger);
	return s != NULL ? s : none(logger, environment, "no memory for an instance");
}

EXPORT void FMI(fmi3FreeInstance)(fmi3Instance c)
{
	free(c);
}

/* to takes an instance from one part of its life to the next. */
static fmi3Status to(instance *s, int from, int next, const char *call)
{
	if (!allowed(s, from, call))
		return fmi3Error;
	s->now.life = next;
	return fmi3OK;
}

EXPORT fmi3Status FMI(fmi3EnterInitializationMode)(fmi3Instance c, fmi3Boolean tolerant, fmi3Float64 tolerance, fmi3Float64 start, fmi3Boolean stops, fmi3Float64 stop)
{
	(void)tolerant, (void)tolerance;
	if (!allowed(c, CREATED, "fmi3EnterInitializationMode") || setup(c, start, stops, stop) != OK)
		return fmi3Error;
	return to(c, CREATED, INITIALIZING, "fmi3EnterInitializationMode");
}

EXPORT fmi3Status FMI(fmi3ExitInitializationMode)(fmi3Instance c)
{
	return to(c, INITIALIZING, STEPPING, "fmi3ExitInitializationMode");
}

EXPORT fmi3Status FMI(fmi3Terminate)(fmi3Instance c)
{
	return to(c, STEPPING, TERMINATED, "fmi3Terminate");
}

EXPORT fmi3Status FMI(fmi3Reset)(fmi3Instance c)
{
	if (c == NULL)
		return fmi3Error;
	restart(c);
	return fmi3OK;
}

/* many tells whether there are as many values as references: no variable is an array. */
static bool many(instance *s, const char *call, size_t references, size_t values)
{
	if (s == NULL || references == values)
		return s != NULL;
	failed(s, "%s: %zu values for %zu variables", call, values, references);
	return false;
}

EXPORT fmi3Status FMI(fmi3GetFloat64)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, fmi3Float64 value[], size_t values)
{
	return (fmi3Status)(many(c, "fmi3GetFloat64", n, values) ? getValues(c, "fmi3GetFloat64", reference, n, value) : ERROR);
}

EXPORT fmi3Status FMI(fmi3SetFloat64)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, const fmi3Float64 value[], size_t values)
{
	return (fmi3Status)(many(c, "fmi3SetFloat64", n, values) ? setValues(c, "fmi3SetFloat64", reference, n, value) : ERROR);
}

/* NONE are the calls for a type of which there are no variables. */
#define NONE(Type) \
	EXPORT fmi3Status FMI(fmi3Get##Type)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, fmi3##Type value[], size_t values) \
	{ \
		(void)reference, (void)value; \
		return (fmi3Status)refused(c, "fmi3Get" #Type, n + values); \
	} \
	EXPORT fmi3Status FMI(fmi3Set##Type)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, const fmi3##Type value[], size_t values) \
	{ \
		(void)reference, (void)value; \
		return (fmi3Status)refused(c, "fmi3Set" #Type, n + values); \
	}

NONE(Float32)
NONE(Int8)
NONE(UInt8)
NONE(Int16)
NONE(UInt16)
NONE(Int32)
NONE(UInt32)
NONE(Int64)
NONE(UInt64)
NONE(Boolean)
NONE(String)

EXPORT fmi3Status FMI(fmi3GetBinary)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, size_t size[], fmi3Binary value[], size_t values)
{
	(void)reference, (void)size, (void)value;
	return (fmi3Status)refused(c, "fmi3GetBinary", n + values);
}

EXPORT fmi3Status FMI(fmi3SetBinary)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, const size_t size[], const fmi3Binary value[], size_t values)
{
	(void)reference, (void)size, (void)value;
	return (fmi3Status)refused(c, "fmi3SetBinary", n + values);
}

EXPORT fmi3Status FMI(fmi3GetFMUState)(fmi3Instance c, fmi3FMUState *state)
{
	return (fmi3Status)getState(c, "fmi3GetFMUState", state);
}

EXPORT fmi3Status FMI(fmi3SetFMUState)(fmi3Instance c, fmi3FMUState state)
{
	return (fmi3Status)setState(c, "fmi3SetFMUState", state);
}

EXPORT fmi3Status FMI(fmi3FreeFMUState)(fmi3Instance c, fmi3FMUState *state)
{
	return (fmi3Status)freeState(c, state);
}

EXPORT fmi3Status FMI(fmi3SerializedFMUStateSize)(fmi3Instance c, fmi3FMUState state, size_t *size)
{
	return (fmi3Status)sizeOfState(c, "fmi3SerializedFMUStateSize", state, size);
}

EXPORT fmi3Status FMI(fmi3SerializeFMUState)(fmi3Instance c, fmi3FMUState state, fmi3Byte bytes[], size_t size)
{
	return (fmi3Status)writeState(c, "fmi3SerializeFMUState", state, bytes, size);
}

EXPORT fmi3Status FMI(fmi3DeserializeFMUState)(fmi3Instance c, const fmi3Byte bytes[], size_t size, fmi3FMUState *state)
{
	return (fmi3Status)readState(c, "fmi3DeserializeFMUState", bytes, size, state);
}

EXPORT fmi3Status FMI(fmi3DoStep)(fmi3Instance c, fmi3Float64 at, fmi3Float64 length, fmi3Boolean noStatesBefore, fmi3Boolean *event, fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *reached)
{
	(void)noStatesBefore; /* nothing is kept for them */
	if (!allowed(c, STEPPING, "fmi3DoStep"))
		return fmi3Error;
	if (event == NULL || terminate == NULL || early == NULL || reached == NULL)
		return (fmi3Status)failed(c, "fmi3DoStep: NULL for a result");
	const int status = advance(c, at, length);
	*event = *terminate = *early = false;
	*reached = now(c);
	return (fmi3Status)status;
}

/* What the description says the plant does not have: calls that take an instance and,
   some of them, how much is asked for, are refused in one way. */
#define LACKS(Call) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c) \
	{ \
		return (fmi3Status)refused(c, "fmi3" #Call, 1); \
	}

LACKS(EnterEventMode)
LACKS(EnterConfigurationMode)
LACKS(ExitConfigurationMode)
LACKS(EvaluateDiscreteStates)
LACKS(EnterContinuousTimeMode)
LACKS(EnterStepMode)

#define LACKS_VALUES(Call, Value) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, Value value[], size_t n) \
	{ \
		(void)value; \
		return (fmi3Status)refused(c, "fmi3" #Call, n); \
	}

LACKS_VALUES(SetContinuousStates, const fmi3Float64)
LACKS_VALUES(GetContinuousStateDerivatives, fmi3Float64)
LACKS_VALUES(GetEventIndicators, fmi3Float64)
LACKS_VALUES(GetContinuousStates, fmi3Float64)
LACKS_VALUES(GetNominalsOfContinuousStates, fmi3Float64)

#define LACKS_CLOCK(Call, Value) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, Value value[]) \
	{ \
		(void)reference, (void)value; \
		return (fmi3Status)refused(c, "fmi3" #Call, n); \
	}

LACKS_CLOCK(GetClock, fmi3Clock)
LACKS_CLOCK(SetClock, const fmi3Clock)
LACKS_CLOCK(GetShiftDecimal, fmi3Float64)
LACKS_CLOCK(SetShiftDecimal, const fmi3Float64)
LACKS_CLOCK(SetIntervalDecimal, const fmi3Float64)

#define LACKS_FRACTION(Call, Value) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, Value counter[], Value resolution[]) \
	{ \
		(void)reference, (void)counter, (void)resolution; \
		return (fmi3Status)refused(c, "fmi3" #Call, n); \
	}

LACKS_FRACTION(GetShiftFraction, fmi3UInt64)
LACKS_FRACTION(SetShiftFraction, const fmi3UInt64)
LACKS_FRACTION(SetIntervalFraction, const fmi3UInt64)

EXPORT fmi3Status FMI(fmi3GetIntervalDecimal)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, fmi3Float64 interval[], fmi3IntervalQualifier qualifier[])
{
	(void)reference, (void)interval, (void)qualifier;
	return (fmi3Status)refused(c, "fmi3GetIntervalDecimal", n);
}

EXPORT fmi3Status FMI(fmi3GetIntervalFraction)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, fmi3UInt64 counter[], fmi3UInt64 resolution[], fmi3IntervalQualifier qualifier[])
{
	(void)reference, (void)counter, (void)resolution, (void)qualifier;
	return (fmi3Status)refused(c, "fmi3GetIntervalFraction", n);
}

EXPORT fmi3Status FMI(fmi3GetNumberOfVariableDependencies)(fmi3Instance c, fmi3ValueReference reference, size_t *n)
{
	(void)reference, (void)n;
	return (fmi3Status)refused(c, "fmi3GetNumberOfVariableDependencies", 1);
}

EXPORT fmi3Status FMI(fmi3GetVariableDependencies)(fmi3Instance c, fmi3ValueReference dependent, size_t element[], fmi3ValueReference independent[], size_t elementOf[], fmi3DependencyKind kind[], size_t n)
{
	(void)dependent, (void)element, (void)independent, (void)elementOf, (void)kind, (void)n;
	return (fmi3Status)refused(c, "fmi3GetVariableDependencies", 1);
}

#define LACKS_DERIVATIVE(Call) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, const fmi3ValueReference unknown[], size_t unknowns, const fmi3ValueReference known[], size_t knowns, const fmi3Float64 seed[], size_t seeds, fmi3Float64 sensitivity[], size_t sensitivities) \
	{ \
		(void)unknown, (void)known, (void)knowns, (void)seed, (void)seeds, (void)sensitivity, (void)sensitivities; \
		return (fmi3Status)refused(c, "fmi3" #Call, unknowns); \
	}

LACKS_DERIVATIVE(GetDirectionalDerivative)
LACKS_DERIVATIVE(GetAdjointDerivative)

EXPORT fmi3Status FMI(fmi3GetOutputDerivatives)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, const fmi3Int32 order[], fmi3Float64 value[], size_t values)
{
	(void)reference, (void)order, (void)value;
	return (fmi3Status)refused(c, "fmi3GetOutputDerivatives", n + values);
}

EXPORT fmi3Status FMI(fmi3UpdateDiscreteStates)(fmi3Instance c, fmi3Boolean *update, fmi3Boolean *terminate, fmi3Boolean *nominals, fmi3Boolean *states, fmi3Boolean *defined, fmi3Float64 *next)
{
	(void)update, (void)terminate, (void)nominals, (void)states, (void)defined, (void)next;
	return (fmi3Status)refused(c, "fmi3UpdateDiscreteStates", 1);
}

EXPORT fmi3Status FMI(fmi3CompletedIntegratorStep)(fmi3Instance c, fmi3Boolean noStatesBefore, fmi3Boolean *event, fmi3Boolean *terminate)
{
	(void)noStatesBefore, (void)event, (void)terminate;
	return (fmi3Status)refused(c, "fmi3CompletedIntegratorStep", 1);
}

EXPORT fmi3Status FMI(fmi3SetTime)(fmi3Instance c, fmi3Float64 time)
{
	(void)time;
	return (fmi3Status)refused(c, "fmi3SetTime", 1);
}

#define LACKS_NUMBER(Call) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, size_t *n) \
	{ \
		(void)n; \
		return (fmi3Status)refused(c, "fmi3" #Call, 1); \
	}

LACKS_NUMBER(GetNumberOfEventIndicators)
LACKS_NUMBER(GetNumberOfContinuousStates)

EXPORT fmi3Status FMI(fmi3ActivateModelPartition)(fmi3Instance c, fmi3ValueReference clock, fmi3Float64 time)
{
	(void)clock, (void)time;
	return (fmi3Status)refused(c, "fmi3ActivateModelPartition", 1);
}
