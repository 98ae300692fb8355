/* Devices, contexts, streams and events. Everything runs at once on the calling thread, so order is program order. */
#define _GNU_SOURCE
#include "simnpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEVICES 16
#define L2_BYTES ((int64_t)192 << 20)

struct stream {
    int32_t id;
    int32_t device;
};

struct event {
    uint64_t nanoseconds; /* monotonic; 0 = never recorded */
};

static __thread char message[512];
static __thread char told[512];
static __thread int32_t current_device;
static char contexts[MAX_DEVICES]; /* only their addresses are used */
static int32_t stream_count;

aclError simnpu_fail(aclError code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(message, sizeof message, "simnpu: ");
    vsnprintf(message + length, sizeof message - (size_t)length, format, arguments);
    va_end(arguments);
    return code;
}

int32_t simnpu_current_device(void) { return current_device; }

static int valid_device(int64_t device) { return device >= 0 && device < (int64_t)simnpu_config.devices; }

static aclError no_device(int64_t device) {
    return simnpu_fail(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device %ld; the simulated machine has %u", (long)device,
                       simnpu_config.devices);
}

EXPORT void simnpu_configure(const char *soc, uint32_t devices, uint32_t cube_cores, int guard, unsigned char poison,
                             size_t trailing) {
    snprintf(simnpu_config.soc, sizeof simnpu_config.soc, "%s", soc);
    simnpu_config.devices = devices < MAX_DEVICES ? devices : MAX_DEVICES;
    simnpu_config.cube_cores = cube_cores;
    simnpu_config.guard = guard;
    simnpu_config.poison = poison;
    simnpu_config.trailing = trailing;
}

EXPORT aclError aclInit(const char *config_path) {
    (void)config_path;
    return ACL_SUCCESS;
}

EXPORT aclError aclFinalize(void) { return ACL_SUCCESS; }

/* The message of the last failure on this thread, once; then NULL as the real one gives. */
EXPORT const char *aclGetRecentErrMsg(void) {
    if (message[0] == 0) return NULL;
    memcpy(told, message, sizeof told);
    message[0] = 0;
    return told;
}

EXPORT void aclAppLog(aclLogLevel level, const char *function, const char *file, uint32_t line, const char *format, ...) {
    (void)level, (void)function, (void)file, (void)line, (void)format; /* no log server */
}

EXPORT const char *aclrtGetSocName(void) { return simnpu_config.soc; }

EXPORT aclError aclrtGetDeviceCount(uint32_t *count) {
    *count = simnpu_config.devices;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSetDevice(int32_t device) {
    if (!valid_device(device)) return no_device(device);
    current_device = device;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtGetDevice(int32_t *device) {
    *device = current_device;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtResetDevice(int32_t device) { return valid_device(device) ? ACL_SUCCESS : no_device(device); }

EXPORT aclError aclrtGetCurrentContext(aclrtContext *context) {
    *context = &contexts[current_device];
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSetCurrentContext(aclrtContext context) {
    char *which = context;
    if (which < contexts || which >= contexts + simnpu_config.devices)
        return simnpu_fail(ACL_ERROR_INVALID_PARAM, "aclrtSetCurrentContext: not a context of this machine");
    current_device = (int32_t)(which - contexts);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t *flags, int32_t *active) {
    if (!valid_device(device)) return no_device(device);
    if (flags != NULL) *flags = 0;
    *active = device == current_device;
    return ACL_SUCCESS;
}

EXPORT aclError aclGetDeviceCapability(uint32_t device, aclDeviceInfo what, int64_t *value) {
    if (!valid_device(device)) return no_device(device);
    switch (what) {
        case ACL_DEVICE_INFO_AI_CORE_NUM: *value = simnpu_config.cube_cores; return ACL_SUCCESS;
        case ACL_DEVICE_INFO_VECTOR_CORE_NUM: *value = 2 * (int64_t)simnpu_config.cube_cores; return ACL_SUCCESS;
        case ACL_DEVICE_INFO_L2_SIZE: *value = L2_BYTES; return ACL_SUCCESS;
        default: return simnpu_fail(ACL_ERROR_INVALID_PARAM, "aclGetDeviceCapability: unknown capability %d", (int)what);
    }
}

EXPORT aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr what, int64_t *value) {
    if (!valid_device(device)) return no_device(device);
    switch (what) {
        case ACL_DEV_ATTR_AICORE_CORE_NUM:
        case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = simnpu_config.cube_cores; return ACL_SUCCESS;
        case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = 2 * (int64_t)simnpu_config.cube_cores; return ACL_SUCCESS;
        case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = L2_BYTES; return ACL_SUCCESS;
        case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: {
            size_t unused, total;
            aclrtGetMemInfo(ACL_HBM_MEM, &unused, &total);
            *value = (int64_t)total;
            return ACL_SUCCESS;
        }
        case ACL_DEV_ATTR_IS_VIRTUAL: *value = 0; return ACL_SUCCESS;
        default:
            return simnpu_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "device attribute %d is not modelled", (int)what);
    }
}

static aclError core_limit(aclrtDevResLimitType type, uint32_t *value) {
    *value = type == ACL_RT_DEV_RES_CUBE_CORE ? simnpu_config.cube_cores : 2 * simnpu_config.cube_cores;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtGetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t *value) {
    return valid_device(device) ? core_limit(type, value) : no_device(device);
}

EXPORT aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value) {
    (void)stream;
    return core_limit(type, value);
}

EXPORT aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value) { return core_limit(type, value); }

EXPORT aclError aclrtDeviceCanAccessPeer(int32_t *can, int32_t device, int32_t peer) {
    *can = valid_device(device) && valid_device(peer) && device != peer;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags) {
    (void)flags;
    return valid_device(peer) ? ACL_SUCCESS : no_device(peer);
}

EXPORT aclError aclrtDeviceGetBareTgid(int32_t *pid) {
    *pid = (int32_t)getpid();
    return ACL_SUCCESS;
}

/* Options of the device compiler and of overflow detection: nothing here compiles device operators, so they are kept
 * nowhere, and reading one back gives its default, 0. */
EXPORT aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t *value) {
    (void)option;
    *value = 0;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtCtxGetSysParamOpt(aclSysParamOpt option, int64_t *value) { return aclrtGetSysParamOpt(option, value); }

EXPORT aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value) {
    if (value == 0) return ACL_SUCCESS;
    /* Deterministic mode: the host kernels are deterministic already. */
    if (option == ACL_OPT_DETERMINISTIC) return ACL_SUCCESS;
    return simnpu_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "system option %d is not modelled", (int)option);
}

EXPORT aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value) { return aclrtSetSysParamOpt(option, value); }

EXPORT aclError aclSetCompileopt(aclCompileOpt option, const char *value) {
    (void)option, (void)value;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
    (void)timeout; /* an operator ends before its call returns: no wait can time out */
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSetOpWaitTimeout(uint32_t timeout) { return aclrtSetOpExecuteTimeOut(timeout); }

EXPORT aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
    (void)mode; /* IEEE infinities and NaN, the mode torch_npu asks for on a 910B */
    return ACL_SUCCESS;
}

EXPORT aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag) {
    (void)stream;
    *flag = 0;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
    (void)stream, (void)mode;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
    (void)level;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtGetLastError(aclrtLastErrLevel level) { return aclrtPeekAtLastError(level); }

EXPORT aclError aclrtCreateStream(aclrtStream *result) {
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) return simnpu_fail(ACL_ERROR_BAD_ALLOC, "no memory for a stream");
    stream->id = __atomic_fetch_add(&stream_count, 1, __ATOMIC_RELAXED);
    stream->device = current_device;
    *result = stream;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtCreateStreamWithConfig(aclrtStream *result, uint32_t priority, uint32_t flag) {
    (void)priority, (void)flag;
    return aclrtCreateStream(result);
}

EXPORT aclError aclrtDestroyStream(aclrtStream stream) {
    free(stream);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtDestroyStreamForce(aclrtStream stream) { return aclrtDestroyStream(stream); }

EXPORT aclError aclrtStreamGetId(aclrtStream stream, int32_t *id) {
    *id = stream == NULL ? 0 : ((struct stream *)stream)->id;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status) {
    (void)stream;
    *status = ACL_STREAM_STATUS_COMPLETE;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSynchronizeStream(aclrtStream stream) {
    (void)stream;
    return simnpu_pending_error();
}

EXPORT aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    (void)timeout;
    return aclrtSynchronizeStream(stream);
}

EXPORT aclError aclrtSynchronizeDevice(void) { return simnpu_pending_error(); }

EXPORT aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    (void)timeout;
    return simnpu_pending_error();
}

EXPORT aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *arguments) {
    (void)stream;
    function(arguments);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtCreateEventExWithFlag(aclrtEvent *result, uint32_t flag) {
    (void)flag;
    *result = calloc(1, sizeof(struct event));
    return *result != NULL ? ACL_SUCCESS : simnpu_fail(ACL_ERROR_BAD_ALLOC, "no memory for an event");
}

EXPORT aclError aclrtCreateEventWithFlag(aclrtEvent *result, uint32_t flag) {
    return aclrtCreateEventExWithFlag(result, flag);
}

EXPORT aclError aclrtDestroyEvent(aclrtEvent event) {
    free(event);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    (void)stream;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    ((struct event *)event)->nanoseconds = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
    (void)stream;
    ((struct event *)event)->nanoseconds = 0;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSynchronizeEvent(aclrtEvent event) {
    (void)event;
    return simnpu_pending_error();
}

EXPORT aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    (void)stream, (void)event; /* whatever was recorded is done */
    return ACL_SUCCESS;
}

EXPORT aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
    (void)event;
    *status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status) {
    (void)event;
    *status = ACL_EVENT_WAIT_STATUS_COMPLETE;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtEventElapsedTime(float *milliseconds, aclrtEvent start, aclrtEvent end) {
    const struct event *first = start, *last = end;
    if (first->nanoseconds == 0 || last->nanoseconds == 0)
        return simnpu_fail(ACL_ERROR_INVALID_PARAM, "aclrtEventElapsedTime: an event was never recorded");
    *milliseconds = (float)((double)(int64_t)(last->nanoseconds - first->nanoseconds) / 1e6);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *microseconds) {
    *microseconds = ((struct event *)event)->nanoseconds / 1000;
    return ACL_SUCCESS;
}
