/* Shared by the parts of the stand-in: its configuration, its memory blocks, its way to report an error. */
#ifndef SIMNPU_H
#define SIMNPU_H

#include <stddef.h>
#include <stdint.h>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "acl/error_codes/rt_error_codes.h"

#define EXPORT __attribute__((visibility("default")))

/* The simulated machine, set once by simnpu_configure before torch_npu is loaded. */
struct simnpu_config {
    char soc[64];
    uint32_t devices;
    uint32_t cube_cores;
    int guard;
    unsigned char poison;
    size_t trailing; /* bytes that the caller of aclrtMallocAlign32 adds to each request and never uses */
};
extern struct simnpu_config simnpu_config;

enum simnpu_state { SIMNPU_LIVE, SIMNPU_FREED };

/* One device allocation. The mapping is [guard page][lead, then user bytes, then slack][guard page]. */
struct simnpu_block {
    struct simnpu_block *next;   /* in its hash bucket, or in the quarantine */
    unsigned char *map;          /* first byte of the mapping, a guard page */
    size_t map_length;
    unsigned char *start;        /* what the caller got */
    size_t size;                 /* what the caller asked for, without trailing padding */
    int32_t device;
    enum simnpu_state state;
};

/* Sets the message that aclGetRecentErrMsg returns on this thread and gives back `code`. */
aclError simnpu_fail(aclError code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The block whose bytes or guard pages are nearest to `address`, or NULL. Takes no lock: callable in a signal handler. */
const struct simnpu_block *simnpu_nearest(uintptr_t address);

/* Where on the host the pointer is: 1 = device memory, 0 = not ours. */
int simnpu_is_device(const void *pointer);

/* Writes one JSON line about a damaged canary to stderr and to the fault descriptor. */
void simnpu_report_damage(const struct simnpu_block *block, long distance);

/* A device error that a synchronization must return, or ACL_SUCCESS. */
aclError simnpu_pending_error(void);

int32_t simnpu_current_device(void);

/* Whether a kernel was named since the last call. */
int simnpu_kernel_ran(void);

#endif
