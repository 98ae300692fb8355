/* Host versions of what device code calls: CANN's math functions, copies between memrefs, memory of a tile.
 *
 * A function's name ends in the type of its first argument, because CANN serves several types under one name; half
 * and bfloat arguments arrive as float (see bind_device_math in native.py). */
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default) /* every function that is not static is for generated code */

/* --- math ------------------------------------------------------------------------------------------------------- */

#define UNARY(name, expression)                    \
    float __hmf_##name##f_f32(float x) { return expression; } \
    float __hmf_##name##Dh_f32(float x) { return expression; }

UNARY(recip, 1.0f / x)
UNARY(log1p, log1pf(x))
UNARY(relu, x != x ? x : (x > 0.0f ? x : 0.0f))
UNARY(tan, tanf(x))
UNARY(atan, atanf(x))
UNARY(tanh, tanhf(x))
UNARY(ilogb, logbf(x))
UNARY(exp, expf(x))
UNARY(log, logf(x))
UNARY(sqrt, sqrtf(x))
UNARY(rsqrt, 1.0f / sqrtf(x))
UNARY(fabs, fabsf(x))
UNARY(floor, floorf(x))
UNARY(round, roundf(x))

float __hmf_ldexpf_f32(float x, float n) { return ldexpf(x, (int)n); }
float __hmf_ldexpDh_f32(float x, float n) { return ldexpf(x, (int)n); }
float __hmf_powf_f32(float x, float y) { return powf(x, y); }
bool __hmf_isinf_f32(float x) { return isinf(x) != 0; }
bool __hmf_isnan_f32(float x) { return isnan(x) != 0; }

/* Powers of integers wrap, as torch's do; a negative exponent leaves 0 except for the bases 1 and -1. */
static uint64_t power(int64_t base, int64_t exponent)
{
    if (exponent < 0)
        return base == 1 ? 1 : base == -1 ? ((exponent & 1) ? (uint64_t)-1 : 1) : 0;
    uint64_t result = 1, factor = (uint64_t)base;
    for (; exponent; exponent >>= 1, factor *= factor)
        if (exponent & 1)
            result *= factor;
    return result;
}
int8_t __hmf_powi_i8(int8_t x, int8_t y) { return (int8_t)power(x, y); }
int16_t __hmf_powi_i16(int16_t x, int16_t y) { return (int16_t)power(x, y); }
int32_t __hmf_powi_i32(int32_t x, int32_t y) { return (int32_t)power(x, y); }
int64_t __hmf_powi_i64(int64_t x, int64_t y) { return (int64_t)power(x, y); }

/* --- conversions that LLVM calls where the processor has no instruction ------------------------------------------ */

/* A 16-bit float travels in the low bits of a float register, so a C float with those bits is the same thing. */
static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float __truncsfbf2(float x)
{
    uint32_t bits = to_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return from_bits((bits >> 16) | 0x40);
    return from_bits((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* Double to float, to odd: rounding the result once more gives what rounding once would have. */
static float to_odd(double x)
{
    float near = (float)x;
    if ((double)near == x || x != x || isinf(near))
        return near;
    uint32_t bits = to_bits(near);
    if (!(bits & 1)) {
        bool away = fabs((double)near) > fabs(x);
        bits += away ? -1 : 1;
    }
    return from_bits(bits);
}
float __truncdfbf2(double x) { return __truncsfbf2(to_odd(x)); }

static float half_from_float(float x)
{
    uint32_t bits = to_bits(x), sign = (bits >> 16) & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return from_bits(sign | 0x7e00 | ((rest >> 13) & 0x3ff));
    if (rest >= 0x477ff000) /* rounds to 65536 or more */
        return from_bits(sign | 0x7c00);
    if (rest < 0x38800000) { /* subnormal: adding 0.5 lines the last bit up and rounds to nearest even */
        return from_bits(sign | (to_bits(from_bits(rest) + 0.5f) - 0x3f000000));
    }
    return from_bits(sign | ((rest - 0x38000000 + 0xfff + ((rest >> 13) & 1)) >> 13));
}
float __truncsfhf2(float x) { return half_from_float(x); }
float __gnu_f2h_ieee(float x) { return half_from_float(x); }
float __truncdfhf2(double x) { return half_from_float(to_odd(x)); }

float __extendhfsf2(float half)
{
    uint32_t bits = to_bits(half) & 0xffff, sign = (bits & 0x8000) << 16, rest = bits & 0x7fff;
    if (rest >= 0x7c00)
        return from_bits(sign | 0x7f800000 | ((rest & 0x3ff) << 13) | ((rest & 0x3ff) ? 0x400000 : 0));
    if (rest < 0x400)
        return from_bits(sign | to_bits((float)rest * 0x1p-24f));
    return from_bits(sign | ((rest << 13) + 0x38000000));
}
float __gnu_h2f_ieee(float half) { return __extendhfsf2(half); }

/* --- memref copies ------------------------------------------------------------------------------------------------ */

struct unranked {
    int64_t rank;
    void *descriptor;
};

static void copy(const char *from, char *to, const int64_t *sizes, const int64_t *from_strides,
                 const int64_t *to_strides, int64_t rank, int64_t size)
{
    if (rank == 0) {
        memcpy(to, from, size);
        return;
    }
    if (rank == 1 && from_strides[0] == 1 && to_strides[0] == 1) {
        if (sizes[0] > 0)
            memmove(to, from, size * sizes[0]);
        return;
    }
    for (int64_t i = 0; i < sizes[0]; i++)
        copy(from + i * from_strides[0] * size, to + i * to_strides[0] * size, sizes + 1, from_strides + 1,
             to_strides + 1, rank - 1, size);
}

/* MLIR's copy between two memrefs of any rank; a descriptor is {base, aligned, offset, sizes..., strides...}. */
void memrefCopy(int64_t size, const struct unranked *from, const struct unranked *to)
{
    int64_t rank = from->rank;
    const int64_t *source = from->descriptor, *target = to->descriptor;
    copy((const char *)source[1] + source[2] * size, (char *)target[1] + target[2] * size, source + 3,
         source + 3 + rank, target + 3 + rank, rank, size);
}

/* --- tile memory -------------------------------------------------------------------------------------------------- */

/* What stands for the unified buffer: a stack of chunks that one program fills and that is emptied before the next. */
struct chunk {
    struct chunk *previous;
    size_t used, size;
    unsigned char bytes[] __attribute__((aligned(64)));
};
static __thread struct chunk *newest;
static int poison = 0xff;
static const size_t chunk_size = 1 << 20;

void simnpu_tile_poison(int byte) { poison = byte & 0xff; }

void *simnpu_tile_alloc(size_t size)
{
    size = (size + 63) & ~(size_t)63;
    if (!newest || newest->size - newest->used < size) {
        size_t room = size > chunk_size ? size : chunk_size;
        struct chunk *chunk = aligned_alloc(64, (sizeof *chunk + room + 63) & ~(size_t)63);
        if (!chunk) {
            fprintf(stderr, "simnpu: out of host memory for a tile of %zu bytes\n", size);
            abort();
        }
        chunk->previous = newest;
        chunk->used = 0;
        chunk->size = room;
        newest = chunk;
    }
    void *place = newest->bytes + newest->used;
    newest->used += size;
    memset(place, poison, size);
    return place;
}

void simnpu_tile_free(void *place) { (void)place; }

void simnpu_tile_reset(void)
{
    while (newest && newest->previous) {
        struct chunk *previous = newest->previous;
        free(newest);
        newest = previous;
    }
    if (newest)
        newest->used = 0;
}
