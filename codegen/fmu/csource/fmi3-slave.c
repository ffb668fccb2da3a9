/* The interface of FMI 3.0 for co-simulation. */
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

static void logError(const instance *s, const char *line)
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
	return (fmi3Status)checkCategories(c, "fmi3SetDebugLogging", n, category);
}

/* reject logs the error of an instantiation and returns NULL. */
static fmi3Instance reject(fmi3LogMessageCallback logger, fmi3InstanceEnvironment environment, const char *error)
{
	if (logger != NULL)
		logger(environment, fmi3Error, CATEGORY, error);
	return NULL;
}

EXPORT fmi3Instance FMI(fmi3InstantiateModelExchange)(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger)
{
	(void)name, (void)token, (void)resources, (void)visible, (void)logging;
	return reject(logger, environment, "the FMU supports co-simulation only");
}

EXPORT fmi3Instance FMI(fmi3InstantiateScheduledExecution)(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3ClockUpdateCallback update, fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock)
{
	(void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)update, (void)lock, (void)unlock;
	return reject(logger, environment, "the FMU supports co-simulation only");
}

EXPORT fmi3Instance FMI(fmi3InstantiateCoSimulation)(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible, fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early, const fmi3ValueReference intermediate[], size_t n, fmi3InstanceEnvironment environment, fmi3LogMessageCallback logger, fmi3IntermediateUpdateCallback update)
{
	const char *error = identityError(name, token);
	(void)resources, (void)visible, (void)logging, (void)early, (void)intermediate, (void)n, (void)update;
	if (error == NULL && events)
		error = "the FMU has no event mode";
	if (error != NULL)
		return reject(logger, environment, error);
	instance *s = createInstance(name, environment, (void (*)(void))logger);
	return s != NULL ? s : reject(logger, environment, "no memory for an instance");
}

EXPORT void FMI(fmi3FreeInstance)(fmi3Instance c)
{
	free(c);
}

/* changePhase takes an instance from one phase to the next. */
static fmi3Status changePhase(instance *s, int from, int next, const char *call)
{
	if (!checkPhase(s, from, call))
		return fmi3Error;
	s->state.phase = next;
	return fmi3OK;
}

EXPORT fmi3Status FMI(fmi3EnterInitializationMode)(fmi3Instance c, fmi3Boolean tolerant, fmi3Float64 tolerance, fmi3Float64 start, fmi3Boolean hasStop, fmi3Float64 stop)
{
	(void)tolerant, (void)tolerance;
	if (!checkPhase(c, INSTANTIATED, "fmi3EnterInitializationMode") || setTimes(c, start, hasStop, stop) != OK)
		return fmi3Error;
	return changePhase(c, INSTANTIATED, INITIALIZING, "fmi3EnterInitializationMode");
}

EXPORT fmi3Status FMI(fmi3ExitInitializationMode)(fmi3Instance c)
{
	return changePhase(c, INITIALIZING, STEPPING, "fmi3ExitInitializationMode");
}

EXPORT fmi3Status FMI(fmi3Terminate)(fmi3Instance c)
{
	return changePhase(c, STEPPING, TERMINATED, "fmi3Terminate");
}

EXPORT fmi3Status FMI(fmi3Reset)(fmi3Instance c)
{
	if (c == NULL)
		return fmi3Error;
	resetInstance(c);
	return fmi3OK;
}

/* checkLengths reports whether there is one value for each reference, since no variable is an
   array; otherwise it fails. */
static bool checkLengths(instance *s, const char *call, size_t references, size_t values)
{
	if (s == NULL || references == values)
		return s != NULL;
	fail(s, "%s: %zu values for %zu variables", call, values, references);
	return false;
}

EXPORT fmi3Status FMI(fmi3GetFloat64)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, fmi3Float64 value[], size_t values)
{
	return (fmi3Status)(checkLengths(c, "fmi3GetFloat64", n, values) ? getValues(c, "fmi3GetFloat64", reference, n, value) : ERROR);
}

EXPORT fmi3Status FMI(fmi3SetFloat64)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, const fmi3Float64 value[], size_t values)
{
	return (fmi3Status)(checkLengths(c, "fmi3SetFloat64", n, values) ? setValues(c, "fmi3SetFloat64", reference, n, value) : ERROR);
}

/* Integers and enumerations are read by this call. */
EXPORT fmi3Status FMI(fmi3GetInt64)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, fmi3Int64 value[], size_t values)
{
	if (!checkLengths(c, "fmi3GetInt64", n, values) || !checkPhase(c, ANY, "fmi3GetInt64") || !checkArrays(c, "fmi3GetInt64", n, reference, value))
		return fmi3Error;
	for (size_t i = 0; i < n; i++) {
		int32_t whole = 0;
		if (getInteger(c, "fmi3GetInt64", reference[i], &whole) != OK)
			return fmi3Error;
		value[i] = whole;
	}
	return fmi3OK;
}

EXPORT fmi3Status FMI(fmi3SetInt64)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, const fmi3Int64 value[], size_t values)
{
	(void)reference, (void)value;
	return (fmi3Status)unsupported(c, "fmi3SetInt64", n + values);
}

/* UNSUPPORTED_TYPE defines the calls for a type without variables. */
#define UNSUPPORTED_TYPE(Type) \
	EXPORT fmi3Status FMI(fmi3Get##Type)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, fmi3##Type value[], size_t values) \
	{ \
		(void)reference, (void)value; \
		return (fmi3Status)unsupported(c, "fmi3Get" #Type, n + values); \
	} \
	EXPORT fmi3Status FMI(fmi3Set##Type)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, const fmi3##Type value[], size_t values) \
	{ \
		(void)reference, (void)value; \
		return (fmi3Status)unsupported(c, "fmi3Set" #Type, n + values); \
	}

UNSUPPORTED_TYPE(Float32)
UNSUPPORTED_TYPE(Int8)
UNSUPPORTED_TYPE(UInt8)
UNSUPPORTED_TYPE(Int16)
UNSUPPORTED_TYPE(UInt16)
UNSUPPORTED_TYPE(Int32)
UNSUPPORTED_TYPE(UInt32)
UNSUPPORTED_TYPE(UInt64)
UNSUPPORTED_TYPE(Boolean)
UNSUPPORTED_TYPE(String)

EXPORT fmi3Status FMI(fmi3GetBinary)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, size_t size[], fmi3Binary value[], size_t values)
{
	(void)reference, (void)size, (void)value;
	return (fmi3Status)unsupported(c, "fmi3GetBinary", n + values);
}

EXPORT fmi3Status FMI(fmi3SetBinary)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, const size_t size[], const fmi3Binary value[], size_t values)
{
	(void)reference, (void)size, (void)value;
	return (fmi3Status)unsupported(c, "fmi3SetBinary", n + values);
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
	(void)noStatesBefore; /* an instance saves no states by itself */
	if (!checkPhase(c, STEPPING, "fmi3DoStep"))
		return fmi3Error;
	if (event == NULL || terminate == NULL || early == NULL || reached == NULL)
		return (fmi3Status)fail(c, "fmi3DoStep: NULL pointer for a result");
	const int status = advance(c, at, length);
	*event = *terminate = *early = false;
	*reached = currentTime(c);
	return (fmi3Status)status;
}

/* Calls of features that modelDescription.xml does not offer. A call with a number of values fails
   if this number is not 0, the others always. */
#define UNSUPPORTED(Call) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c) \
	{ \
		return (fmi3Status)unsupported(c, "fmi3" #Call, 1); \
	}

UNSUPPORTED(EnterEventMode)
UNSUPPORTED(EnterConfigurationMode)
UNSUPPORTED(ExitConfigurationMode)
UNSUPPORTED(EvaluateDiscreteStates)
UNSUPPORTED(EnterContinuousTimeMode)
UNSUPPORTED(EnterStepMode)

#define UNSUPPORTED_VALUES(Call, Value) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, Value value[], size_t n) \
	{ \
		(void)value; \
		return (fmi3Status)unsupported(c, "fmi3" #Call, n); \
	}

UNSUPPORTED_VALUES(SetContinuousStates, const fmi3Float64)
UNSUPPORTED_VALUES(GetContinuousStateDerivatives, fmi3Float64)
UNSUPPORTED_VALUES(GetEventIndicators, fmi3Float64)
UNSUPPORTED_VALUES(GetContinuousStates, fmi3Float64)
UNSUPPORTED_VALUES(GetNominalsOfContinuousStates, fmi3Float64)

#define UNSUPPORTED_CLOCK(Call, Value) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, Value value[]) \
	{ \
		(void)reference, (void)value; \
		return (fmi3Status)unsupported(c, "fmi3" #Call, n); \
	}

UNSUPPORTED_CLOCK(GetClock, fmi3Clock)
UNSUPPORTED_CLOCK(SetClock, const fmi3Clock)
UNSUPPORTED_CLOCK(GetShiftDecimal, fmi3Float64)
UNSUPPORTED_CLOCK(SetShiftDecimal, const fmi3Float64)
UNSUPPORTED_CLOCK(SetIntervalDecimal, const fmi3Float64)

#define UNSUPPORTED_FRACTION(Call, Value) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, Value counter[], Value resolution[]) \
	{ \
		(void)reference, (void)counter, (void)resolution; \
		return (fmi3Status)unsupported(c, "fmi3" #Call, n); \
	}

UNSUPPORTED_FRACTION(GetShiftFraction, fmi3UInt64)
UNSUPPORTED_FRACTION(SetShiftFraction, const fmi3UInt64)
UNSUPPORTED_FRACTION(SetIntervalFraction, const fmi3UInt64)

EXPORT fmi3Status FMI(fmi3GetIntervalDecimal)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, fmi3Float64 interval[], fmi3IntervalQualifier qualifier[])
{
	(void)reference, (void)interval, (void)qualifier;
	return (fmi3Status)unsupported(c, "fmi3GetIntervalDecimal", n);
}

EXPORT fmi3Status FMI(fmi3GetIntervalFraction)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, fmi3UInt64 counter[], fmi3UInt64 resolution[], fmi3IntervalQualifier qualifier[])
{
	(void)reference, (void)counter, (void)resolution, (void)qualifier;
	return (fmi3Status)unsupported(c, "fmi3GetIntervalFraction", n);
}

EXPORT fmi3Status FMI(fmi3GetNumberOfVariableDependencies)(fmi3Instance c, fmi3ValueReference reference, size_t *n)
{
	(void)reference, (void)n;
	return (fmi3Status)unsupported(c, "fmi3GetNumberOfVariableDependencies", 1);
}

EXPORT fmi3Status FMI(fmi3GetVariableDependencies)(fmi3Instance c, fmi3ValueReference dependent, size_t element[], fmi3ValueReference independent[], size_t elementOf[], fmi3DependencyKind kind[], size_t n)
{
	(void)dependent, (void)element, (void)independent, (void)elementOf, (void)kind, (void)n;
	return (fmi3Status)unsupported(c, "fmi3GetVariableDependencies", 1);
}

#define UNSUPPORTED_DERIVATIVE(Call) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, const fmi3ValueReference unknown[], size_t unknowns, const fmi3ValueReference known[], size_t knowns, const fmi3Float64 seed[], size_t seeds, fmi3Float64 sensitivity[], size_t sensitivities) \
	{ \
		(void)unknown, (void)known, (void)knowns, (void)seed, (void)seeds, (void)sensitivity, (void)sensitivities; \
		return (fmi3Status)unsupported(c, "fmi3" #Call, unknowns); \
	}

UNSUPPORTED_DERIVATIVE(GetDirectionalDerivative)
UNSUPPORTED_DERIVATIVE(GetAdjointDerivative)

EXPORT fmi3Status FMI(fmi3GetOutputDerivatives)(fmi3Instance c, const fmi3ValueReference reference[], size_t n, const fmi3Int32 order[], fmi3Float64 value[], size_t values)
{
	(void)reference, (void)order, (void)value;
	return (fmi3Status)unsupported(c, "fmi3GetOutputDerivatives", n + values);
}

EXPORT fmi3Status FMI(fmi3UpdateDiscreteStates)(fmi3Instance c, fmi3Boolean *update, fmi3Boolean *terminate, fmi3Boolean *nominals, fmi3Boolean *states, fmi3Boolean *defined, fmi3Float64 *next)
{
	(void)update, (void)terminate, (void)nominals, (void)states, (void)defined, (void)next;
	return (fmi3Status)unsupported(c, "fmi3UpdateDiscreteStates", 1);
}

EXPORT fmi3Status FMI(fmi3CompletedIntegratorStep)(fmi3Instance c, fmi3Boolean noStatesBefore, fmi3Boolean *event, fmi3Boolean *terminate)
{
	(void)noStatesBefore, (void)event, (void)terminate;
	return (fmi3Status)unsupported(c, "fmi3CompletedIntegratorStep", 1);
}

EXPORT fmi3Status FMI(fmi3SetTime)(fmi3Instance c, fmi3Float64 time)
{
	(void)time;
	return (fmi3Status)unsupported(c, "fmi3SetTime", 1);
}

#define UNSUPPORTED_NUMBER(Call) \
	EXPORT fmi3Status FMI(fmi3##Call)(fmi3Instance c, size_t *n) \
	{ \
		(void)n; \
		return (fmi3Status)unsupported(c, "fmi3" #Call, 1); \
	}

UNSUPPORTED_NUMBER(GetNumberOfEventIndicators)
UNSUPPORTED_NUMBER(GetNumberOfContinuousStates)

EXPORT fmi3Status FMI(fmi3ActivateModelPartition)(fmi3Instance c, fmi3ValueReference clock, fmi3Float64 time)
{
	(void)clock, (void)time;
	return (fmi3Status)unsupported(c, "fmi3ActivateModelPartition", 1);
}
