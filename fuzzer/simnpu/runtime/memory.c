/*
 * Device memory on the host. Each allocation is a mapping of its own between two inaccessible pages and ends as close
 * to the second one as its alignment allows. The bytes before it and the few after it hold a canary, checked when the
 * memory is freed and when a stream is synchronized. Freed memory stays out of use for a while: a large block becomes
 * inaccessible, so that a late access is a fault; a small one is filled with the poison byte, and must still be full
 * of it when its pages serve again, which saves four system calls for each tensor.
 */
#define _GNU_SOURCE
#include "simnpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define ALIGNMENT ((size_t)32) /* what aclrtMallocAlign32 promises */
#define CANARY 0x5C
#define BUCKETS 16384u
#define QUARANTINE 512u                              /* freed large blocks that stay inaccessible */
#define SMALL_PAGES 16u                              /* blocks of up to that many pages are pooled */
#define POOL 1024u                                   /* most freed blocks of one page count that are kept */
#define COOL_DOWN 64u                                /* freed later than this many others: not yet used again */
#define HBM ((size_t)64 << 30)                       /* device memory of an Ascend 910B */
#define MAX_DEVICES 16

struct simnpu_config simnpu_config = {"Ascend910B2", 1, 24, 1, 0xFF, 0};

static struct simnpu_block *buckets[BUCKETS];
static struct simnpu_block *quarantine[QUARANTINE];
static unsigned quarantine_next;
static struct pool {
    struct simnpu_block *blocks[POOL]; /* a ring, oldest first */
    unsigned first, count;
} pools[SMALL_PAGES + 1];
static unsigned char canary_page[PAGE];
static size_t used[MAX_DEVICES];
static size_t live_blocks;
static size_t damaged_blocks; /* since the last synchronization that told of them */
static size_t damaged_total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void start(void) {
    memset(canary_page, CANARY, sizeof canary_page);
    pthread_atfork(before_fork, after_fork, after_fork);
}

static unsigned bucket_of(const void *start) { return (unsigned)(((uintptr_t)start >> 12) % BUCKETS); }

static size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

static size_t capacity(void) {
    static size_t bytes;
    if (bytes == 0) {
        size_t host = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
        bytes = host < HBM ? host : HBM;
    }
    return bytes;
}

/* The distance of the first damaged canary byte past the end (positive) or before the start (negative), or 0. */
static long find_damage(const struct simnpu_block *block) {
    const unsigned char *body = block->map + PAGE, *limit = block->map + block->map_length - PAGE;
    const unsigned char *end = block->start + block->size;
    for (const unsigned char *byte = end; byte < limit; byte++)
        if (*byte != CANARY) return (long)(byte - end) + 1;
    if (memcmp(body, canary_page, (size_t)(block->start - body)) == 0) return 0;
    for (const unsigned char *byte = block->start; byte-- > body;)
        if (*byte != CANARY) return -(long)(block->start - byte);
    return 0;
}

static void note_damage(const struct simnpu_block *block, long distance) {
    damaged_blocks++;
    damaged_total++;
    simnpu_report_damage(block, distance);
}

/* Repairs the canary after a report, so that each overwrite is told once. */
static void paint_canary(struct simnpu_block *block) {
    unsigned char *body = block->map + PAGE, *limit = block->map + block->map_length - PAGE;
    unsigned char *end = block->start + block->size;
    memset(body, CANARY, (size_t)(block->start - body));
    memset(end, CANARY, (size_t)(limit - end));
}

/* A new mapping with `body` accessible bytes, or NULL with errno set. */
static struct simnpu_block *map_block(size_t body) {
    struct simnpu_block *block = calloc(1, sizeof *block);
    if (block == NULL) return NULL;
    block->map_length = body + 2 * PAGE;
    block->map = mmap(NULL, block->map_length, simnpu_config.guard ? PROT_NONE : PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block->map != MAP_FAILED && simnpu_config.guard && mprotect(block->map + PAGE, body, PROT_READ | PROT_WRITE) != 0) {
        int reason = errno;
        munmap(block->map, block->map_length);
        block->map = MAP_FAILED;
        errno = reason;
    }
    if (block->map != MAP_FAILED) return block;
    int reason = errno;
    free(block);
    errno = reason;
    return NULL;
}

/* The oldest freed block of that many pages, if enough others were freed after it; NULL if there is none. */
static struct simnpu_block *reuse_block(size_t pages) {
    if (pages > SMALL_PAGES || pools[pages].count <= COOL_DOWN) return NULL;
    struct pool *pool = &pools[pages];
    struct simnpu_block *block = pool->blocks[pool->first];
    pool->first = (pool->first + 1) % POOL;
    pool->count--;
    const unsigned char *body = block->map + PAGE;
    size_t length = pages * PAGE;
    if (body[0] == simnpu_config.poison && memcmp(body, body + 1, length - 1) == 0) return block;
    while (*body == simnpu_config.poison) body++;
    long before = (long)(block->start - body), after = (long)(body - block->start) - (long)block->size + 1;
    note_damage(block, before > 0 ? -before : after > 0 ? after : 0);
    return block;
}

static aclError allocate(void **result, size_t requested, size_t trailing) {
    if (result == NULL) return simnpu_fail(ACL_ERROR_INVALID_PARAM, "aclrtMalloc: the result pointer is null");
    if (requested == 0) return simnpu_fail(ACL_ERROR_INVALID_PARAM, "aclrtMalloc: size must be greater than 0");
    size_t size = requested > trailing ? requested - trailing : requested;
    int32_t device = simnpu_current_device();
    if (size > capacity() - used[device])
        return simnpu_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "device %d is out of memory: %zu bytes asked, %zu of %zu in use",
                           device, size, used[device], capacity());
    size_t body = round_up(round_up(size, ALIGNMENT), PAGE);

    pthread_mutex_lock(&lock);
    struct simnpu_block *block = reuse_block(body / PAGE);
    int reused = block != NULL;
    if (!reused) block = map_block(body);
    if (block == NULL) {
        int reason = errno;
        pthread_mutex_unlock(&lock);
        return simnpu_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                           "the host refused %zu bytes (%s; %zu device allocations live, see vm.max_map_count)", size,
                           strerror(reason), live_blocks);
    }
    block->start = block->map + PAGE + (simnpu_config.guard ? body - round_up(size, ALIGNMENT) : 0);
    block->size = size;
    block->device = device;
    block->state = SIMNPU_LIVE;
    memset(block->start, simnpu_config.poison, size);
    paint_canary(block);
    unsigned bucket = bucket_of(block->start);
    block->next = buckets[bucket];
    buckets[bucket] = block;
    used[device] += size;
    live_blocks++;
    pthread_mutex_unlock(&lock);
    *result = block->start;
    return ACL_SUCCESS;
}

static struct simnpu_block *unlink_block(const void *start) {
    for (struct simnpu_block **at = &buckets[bucket_of(start)]; *at != NULL; at = &(*at)->next)
        if ((*at)->start == start) {
            struct simnpu_block *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

/* Puts a freed block out of use: poisoned in its pool, or inaccessible in the quarantine. */
static void retire(struct simnpu_block *block) {
    size_t body = block->map_length - 2 * PAGE;
    if (body <= SMALL_PAGES * PAGE && pools[body / PAGE].count < POOL) {
        struct pool *pool = &pools[body / PAGE];
        memset(block->map + PAGE, simnpu_config.poison, body);
        pool->blocks[(pool->first + pool->count) % POOL] = block;
        pool->count++;
        return;
    }
    /* A fresh inaccessible mapping over the old one gives the memory back and keeps the addresses taken. */
    mmap(block->map, block->map_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    struct simnpu_block *oldest = quarantine[quarantine_next];
    quarantine[quarantine_next] = block;
    quarantine_next = (quarantine_next + 1) % QUARANTINE;
    if (oldest == NULL) return;
    munmap(oldest->map, oldest->map_length);
    free(oldest);
}

EXPORT aclError aclrtFree(void *start) {
    if (start == NULL) return ACL_SUCCESS;
    pthread_mutex_lock(&lock);
    struct simnpu_block *block = unlink_block(start);
    if (block == NULL) {
        pthread_mutex_unlock(&lock);
        return simnpu_fail(ACL_ERROR_INVALID_PARAM, "aclrtFree: %p is not the start of a live device allocation", start);
    }
    long distance = find_damage(block);
    if (distance != 0) note_damage(block, distance);
    block->state = SIMNPU_FREED;
    block->next = NULL;
    used[block->device] -= block->size;
    live_blocks--;
    retire(block);
    pthread_mutex_unlock(&lock);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtMalloc(void **result, size_t size, aclrtMemMallocPolicy policy) {
    (void)policy;
    return allocate(result, size, 0);
}

EXPORT aclError aclrtMallocAlign32(void **result, size_t size, aclrtMemMallocPolicy policy) {
    (void)policy;
    return allocate(result, size, simnpu_config.trailing);
}

/* Looks at every canary. Gives the number of blocks found damaged since the last call, and forgets them. */
EXPORT size_t simnpu_check_memory(void) {
    pthread_mutex_lock(&lock);
    for (unsigned bucket = 0; bucket < BUCKETS && live_blocks > 0; bucket++)
        for (struct simnpu_block *block = buckets[bucket]; block != NULL; block = block->next) {
            long distance = find_damage(block);
            if (distance == 0) continue;
            note_damage(block, distance);
            paint_canary(block);
        }
    size_t found = damaged_blocks;
    damaged_blocks = 0;
    pthread_mutex_unlock(&lock);
    return found;
}

EXPORT size_t simnpu_damaged_total(void) { return damaged_total; }

EXPORT size_t simnpu_live_blocks(void) { return live_blocks; }

/* Start and size of the live allocation that holds `address`; 0 if none does. */
EXPORT int simnpu_find(uintptr_t address, uintptr_t *start, size_t *size) {
    const struct simnpu_block *block = simnpu_nearest(address);
    if (block == NULL || block->state != SIMNPU_LIVE) return 0;
    if (address < (uintptr_t)block->start || address >= (uintptr_t)block->start + block->size) return 0;
    *start = (uintptr_t)block->start;
    *size = block->size;
    return 1;
}

aclError simnpu_pending_error(void) {
    /* Only kernels write where nobody checks; torch_npu synchronizes at every free, so look only after one ran. */
    if (!simnpu_kernel_ran() && damaged_blocks == 0) return ACL_SUCCESS;
    size_t found = simnpu_check_memory();
    if (found == 0) return ACL_SUCCESS;
    return simnpu_fail(ACL_ERROR_RT_AICORE_EXCEPTION, "%zu device allocation(s) were written outside their bounds", found);
}

static size_t distance_to(const struct simnpu_block *block, uintptr_t address) {
    uintptr_t start = (uintptr_t)block->start, end = start + block->size;
    if (address < start) return start - address;
    return address < end ? 0 : address - end + 1;
}

const struct simnpu_block *simnpu_nearest(uintptr_t address) {
    const struct simnpu_block *best = NULL;
#define CONSIDER(block) \
    if ((block) != NULL && (best == NULL || distance_to((block), address) < distance_to(best, address))) best = (block)
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (const struct simnpu_block *block = buckets[bucket]; block != NULL; block = block->next) CONSIDER(block);
    for (unsigned slot = 0; slot < QUARANTINE; slot++) CONSIDER(quarantine[slot]);
    for (unsigned pages = 1; pages <= SMALL_PAGES; pages++)
        for (unsigned index = 0; index < pools[pages].count; index++)
            CONSIDER(pools[pages].blocks[(pools[pages].first + index) % POOL]);
#undef CONSIDER
    return best;
}

int simnpu_is_device(const void *pointer) {
    uintptr_t start;
    size_t size;
    return simnpu_find((uintptr_t)pointer, &start, &size);
}

EXPORT aclError aclrtGetMemInfo(aclrtMemAttr attribute, size_t *free_bytes, size_t *total_bytes) {
    (void)attribute;
    *total_bytes = capacity();
    *free_bytes = capacity() - used[simnpu_current_device()];
    return ACL_SUCCESS;
}

EXPORT aclError aclrtMallocHost(void **result, size_t size) {
    if (posix_memalign(result, 64, size ? size : 1) != 0)
        return simnpu_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "the host refused %zu bytes of pinned memory", size);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtMallocHostWithCfg(void **result, uint64_t size, aclrtMallocConfig *config) {
    (void)config;
    return aclrtMallocHost(result, size);
}

EXPORT aclError aclrtFreeHost(void *start) {
    free(start);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t count, aclrtMemcpyKind kind) {
    (void)kind;
    if (count > room) return simnpu_fail(ACL_ERROR_INVALID_PARAM, "aclrtMemcpy: %zu bytes into room for %zu", count, room);
    memmove(to, from, count);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t count, aclrtMemcpyKind kind,
                                 aclrtStream stream) {
    (void)stream;
    return aclrtMemcpy(to, room, from, count, kind);
}

EXPORT aclError aclrtMemset(void *start, size_t room, int32_t value, size_t count) {
    if (count > room) return simnpu_fail(ACL_ERROR_INVALID_PARAM, "aclrtMemset: %zu bytes into room for %zu", count, room);
    memset(start, value, count);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtMemsetAsync(void *start, size_t room, int32_t value, size_t count, aclrtStream stream) {
    (void)stream;
    return aclrtMemset(start, room, value, count);
}

EXPORT aclError aclrtPointerGetAttributes(const void *pointer, aclrtPtrAttributes *attributes) {
    memset(attributes, 0, sizeof *attributes);
    attributes->location.type =
        simnpu_is_device(pointer) ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    return ACL_SUCCESS;
}
