/* The interface of FMI 2.0 for co-simulation. */
#include "fmi-plant.h"
#define CATEGORY "logStatusError"
#include "fmi-slave.h"

typedef void *fmi2Component, *fmi2ComponentEnvironment, *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer, fmi2Boolean;
typedef char fmi2Char, fmi2Byte;
typedef const fmi2Char *fmi2String;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } fmi2StatusKind;

typedef void (*fmi2CallbackLogger)(fmi2ComponentEnvironment, fmi2String instanceName, fmi2Status, fmi2String category, fmi2String message, ...);
typedef void *(*fmi2CallbackAllocateMemory)(size_t n, size_t size);
typedef void (*fmi2CallbackFreeMemory)(void *);
typedef void (*fmi2StepFinished)(fmi2ComponentEnvironment, fmi2Status);

typedef struct {
	fmi2CallbackLogger logger;
	fmi2CallbackAllocateMemory allocateMemory;
	fmi2CallbackFreeMemory freeMemory;
	fmi2StepFinished stepFinished;
	fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;

static void logError(const instance *s, const char *line)
{
	if (s->logger != NULL)
		((fmi2CallbackLogger)s->logger)(s->environment, s->name, fmi2Error, CATEGORY, line);
}

EXPORT const char *FMI(fmi2GetTypesPlatform)(void)
{
	return "default";
}

EXPORT const char *FMI(fmi2GetVersion)(void)
{
	return "2.0";
}

EXPORT fmi2Status FMI(fmi2SetDebugLogging)(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String category[])
{
	(void)on;
	return (fmi2Status)checkCategories(c, "fmi2SetDebugLogging", n, category);
}

EXPORT fmi2Component FMI(fmi2Instantiate)(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources, const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging)
{
	const fmi2CallbackLogger logger = functions == NULL ? NULL : functions->logger;
	void *environment = functions == NULL ? NULL : functions->componentEnvironment;
	const char *error = identityError(name, guid);
	(void)resources, (void)visible, (void)logging;
	if (error == NULL && type != fmi2CoSimulation)
		error = "the FMU supports co-simulation only";
	instance *s = error == NULL ? createInstance(name, environment, (void (*)(void))logger) : NULL;
	if (s == NULL && logger != NULL)
		logger(environment, name == NULL ? "" : name, fmi2Error, CATEGORY, error == NULL ? "no memory for an instance" : error);
	return s;
}

EXPORT void FMI(fmi2FreeInstance)(fmi2Component c)
{
	free(c);
}

EXPORT fmi2Status FMI(fmi2SetupExperiment)(fmi2Component c, fmi2Boolean tolerant, fmi2Real tolerance, fmi2Real start, fmi2Boolean hasStop, fmi2Real stop)
{
	(void)tolerant, (void)tolerance;
	return (fmi2Status)(checkPhase(c, INSTANTIATED, "fmi2SetupExperiment") ? setTimes(c, start, hasStop, stop) : ERROR);
}

/* changePhase takes an instance from one phase to the next. */
static fmi2Status changePhase(instance *s, int from, int next, const char *call)
{
	if (!checkPhase(s, from, call))
		return fmi2Error;
	s->state.phase = next;
	return fmi2OK;
}

EXPORT fmi2Status FMI(fmi2EnterInitializationMode)(fmi2Component c)
{
	return changePhase(c, INSTANTIATED, INITIALIZING, "fmi2EnterInitializationMode");
}

EXPORT fmi2Status FMI(fmi2ExitInitializationMode)(fmi2Component c)
{
	return changePhase(c, INITIALIZING, STEPPING, "fmi2ExitInitializationMode");
}

EXPORT fmi2Status FMI(fmi2Terminate)(fmi2Component c)
{
	return changePhase(c, STEPPING, TERMINATED, "fmi2Terminate");
}

EXPORT fmi2Status FMI(fmi2Reset)(fmi2Component c)
{
	if (c == NULL)
		return fmi2Error;
	resetInstance(c);
	return fmi2OK;
}

EXPORT fmi2Status FMI(fmi2GetReal)(fmi2Component c, const fmi2ValueReference reference[], size_t n, fmi2Real value[])
{
	return (fmi2Status)getValues(c, "fmi2GetReal", reference, n, value);
}

EXPORT fmi2Status FMI(fmi2SetReal)(fmi2Component c, const fmi2ValueReference reference[], size_t n, const fmi2Real value[])
{
	return (fmi2Status)setValues(c, "fmi2SetReal", reference, n, value);
}

EXPORT fmi2Status FMI(fmi2GetInteger)(fmi2Component c, const fmi2ValueReference reference[], size_t n, fmi2Integer value[])
{
	if (!checkPhase(c, ANY, "fmi2GetInteger") || !checkArrays(c, "fmi2GetInteger", n, reference, value))
		return fmi2Error;
	for (size_t i = 0; i < n; i++)
		if (getInteger(c, "fmi2GetInteger", reference[i], &value[i]) != OK)
			return fmi2Error;
	return fmi2OK;
}

EXPORT fmi2Status FMI(fmi2SetInteger)(fmi2Component c, const fmi2ValueReference reference[], size_t n, const fmi2Integer value[])
{
	(void)reference, (void)value;
	return (fmi2Status)unsupported(c, "fmi2SetInteger", n);
}

/* UNSUPPORTED_TYPE defines the calls for a type without variables. */
#define UNSUPPORTED_TYPE(Type) \
	EXPORT fmi2Status FMI(fmi2Get##Type)(fmi2Component c, const fmi2ValueReference reference[], size_t n, fmi2##Type value[]) \
	{ \
		(void)reference, (void)value; \
		return (fmi2Status)unsupported(c, "fmi2Get" #Type, n); \
	} \
	EXPORT fmi2Status FMI(fmi2Set##Type)(fmi2Component c, const fmi2ValueReference reference[], size_t n, const fmi2##Type value[]) \
	{ \
		(void)reference, (void)value; \
		return (fmi2Status)unsupported(c, "fmi2Set" #Type, n); \
	}

UNSUPPORTED_TYPE(Boolean)
UNSUPPORTED_TYPE(String)

EXPORT fmi2Status FMI(fmi2GetFMUstate)(fmi2Component c, fmi2FMUstate *state)
{
	return (fmi2Status)getState(c, "fmi2GetFMUstate", state);
}

EXPORT fmi2Status FMI(fmi2SetFMUstate)(fmi2Component c, fmi2FMUstate state)
{
	return (fmi2Status)setState(c, "fmi2SetFMUstate", state);
}

EXPORT fmi2Status FMI(fmi2FreeFMUstate)(fmi2Component c, fmi2FMUstate *state)
{
	return (fmi2Status)freeState(c, state);
}

EXPORT fmi2Status FMI(fmi2SerializedFMUstateSize)(fmi2Component c, fmi2FMUstate state, size_t *size)
{
	return (fmi2Status)sizeOfState(c, "fmi2SerializedFMUstateSize", state, size);
}

EXPORT fmi2Status FMI(fmi2SerializeFMUstate)(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size)
{
	return (fmi2Status)writeState(c, "fmi2SerializeFMUstate", state, bytes, size);
}

EXPORT fmi2Status FMI(fmi2DeSerializeFMUstate)(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state)
{
	return (fmi2Status)readState(c, "fmi2DeSerializeFMUstate", bytes, size, state);
}

EXPORT fmi2Status FMI(fmi2GetDirectionalDerivative)(fmi2Component c, const fmi2ValueReference unknown[], size_t unknowns, const fmi2ValueReference known[], size_t knowns, const fmi2Real dknown[], fmi2Real dunknown[])
{
	(void)unknown, (void)known, (void)knowns, (void)dknown, (void)dunknown;
	return (fmi2Status)unsupported(c, "fmi2GetDirectionalDerivative", unknowns);
}

EXPORT fmi2Status FMI(fmi2SetRealInputDerivatives)(fmi2Component c, const fmi2ValueReference reference[], size_t n, const fmi2Integer order[], const fmi2Real value[])
{
	(void)reference, (void)order, (void)value;
	return (fmi2Status)unsupported(c, "fmi2SetRealInputDerivatives", n);
}

EXPORT fmi2Status FMI(fmi2GetRealOutputDerivatives)(fmi2Component c, const fmi2ValueReference reference[], size_t n, const fmi2Integer order[], fmi2Real value[])
{
	(void)reference, (void)order, (void)value;
	return (fmi2Status)unsupported(c, "fmi2GetRealOutputDerivatives", n);
}

EXPORT fmi2Status FMI(fmi2DoStep)(fmi2Component c, fmi2Real at, fmi2Real length, fmi2Boolean noStatesBefore)
{
	(void)noStatesBefore; /* an instance saves no states by itself */
	return (fmi2Status)(checkPhase(c, STEPPING, "fmi2DoStep") ? advance(c, at, length) : ERROR);
}

EXPORT fmi2Status FMI(fmi2CancelStep)(fmi2Component c)
{
	return (fmi2Status)unsupported(c, "fmi2CancelStep", 1); /* a step is never pending */
}

/* discard answers a question about the status of a step that is not supported: it logs a reason and
   changes nothing. A step is never pending. */
static fmi2Status discard(const instance *s, const char *call)
{
	if (s == NULL)
		return fmi2Error;
	if (s->logger != NULL)
		((fmi2CallbackLogger)s->logger)(s->environment, s->name, fmi2Discard, CATEGORY, call);
	return fmi2Discard;
}

EXPORT fmi2Status FMI(fmi2GetStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value)
{
	(void)kind, (void)value;
	return discard(c, "fmi2GetStatus: no step is pending");
}

EXPORT fmi2Status FMI(fmi2GetRealStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value)
{
	if (c == NULL || kind != fmi2LastSuccessfulTime || value == NULL)
		return discard(c, "fmi2GetRealStatus: only fmi2LastSuccessfulTime is supported");
	*value = currentTime(c);
	return fmi2OK;
}

EXPORT fmi2Status FMI(fmi2GetIntegerStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value)
{
	(void)kind, (void)value;
	return discard(c, "fmi2GetIntegerStatus: not supported");
}

EXPORT fmi2Status FMI(fmi2GetBooleanStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value)
{
	if (c == NULL || kind != fmi2Terminated || value == NULL)
		return discard(c, "fmi2GetBooleanStatus: only fmi2Terminated is supported");
	*value = ((const instance *)c)->state.phase == FAILED;
	return fmi2OK;
}

EXPORT fmi2Status FMI(fmi2GetStringStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2String *value)
{
	(void)kind, (void)value;
	return discard(c, "fmi2GetStringStatus: no step is pending");
}
