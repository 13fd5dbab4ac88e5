// Peak rates are measured with the widest vectors, by small loops on registers and on 16 KiB of
// memory. The loops are compiled for each instruction set and chosen at run time, because this
// program itself is built for any processor of the architecture.
#include "executor/cpu/machine.h"
#include "common/clock.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define DEFAULT_LAST_LEVEL ((size_t)32 << 20)
#define RUN_NS (15 * NS_PER_MS) // duration of one measurement
// Factors that make upper bounds of what was measured: the clock may be higher in another run, and
// loads and stores may run at the same time.
#define FLOPS_MARGIN 1.3
#define BYTES_MARGIN 2.0

// Returns the bytes of the data cache of a level as sysfs gives them, 0 when it does not.
static size_t sysfs_bytes(unsigned level)
{
    for (unsigned index = 0; index < 8; index++) {
        char path[96], text[32] = "";

        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/level", index);
        FILE *file = fopen(path, "re");
        if (!file) {
            break;
        }
        unsigned found = 0;
        if (fscanf(file, "%u", &found) != 1) {
            found = 0;
        }
        fclose(file);
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/type", index);
        file = fopen(path, "re");
        if (found != level || !file || fscanf(file, "%31s", text) != 1 ||
            strcmp(text, "Instruction") == 0) {
            if (file) {
                fclose(file);
            }
            continue;
        }
        fclose(file);
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%u/size", index);
        file = fopen(path, "re");
        if (file) {
            unsigned long kib = 0;
            if (fscanf(file, "%luK", &kib) != 1) {
                kib = 0;
            }
            fclose(file);
            return (size_t)kib << 10;
        }
    }
    return 0;
}

size_t machine_cache_bytes(unsigned level)
{
    static const int name[] = {0, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                               _SC_LEVEL3_CACHE_SIZE};

    if (level == 0) {
        for (unsigned l = 3; l >= 1; l--) {
            size_t bytes = machine_cache_bytes(l);
            if (bytes != 0) {
                return bytes;
            }
        }
        return DEFAULT_LAST_LEVEL;
    }
    if (level > 3) {
        return 0;
    }
    // sysconf is second choice: on some processors it gives the sum over all third-level caches.
    size_t bytes = sysfs_bytes(level);
    long size = bytes == 0 ? sysconf(name[level]) : 0;
    return size > 0 ? (size_t)size : bytes;
}

void machine_model(char *out, size_t size)
{
    snprintf(out, size, "unknown");
#if defined(__x86_64__)
    unsigned part[12];
    unsigned most = __get_cpuid_max(0x80000000, NULL);
    if (most >= 0x80000004) {
        char text[49] = "", *start = text;
        for (unsigned i = 0; i < 3; i++) {
            __cpuid(0x80000002 + i, part[4 * i], part[4 * i + 1], part[4 * i + 2], part[4 * i + 3]);
        }
        memcpy(text, part, 48);
        while (*start == ' ') {
            start++;
        }
        for (char *end = start + strlen(start); end > start && end[-1] == ' ';) {
            *--end = '\0';
        }
        if (*start != '\0') {
            snprintf(out, size, "%s", start);
        }
    }
#else
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (file && fgets(line, sizeof(line), file)) {
        char *colon = strchr(line, ':');
        if (colon && (strncmp(line, "model name", 10) == 0 || strncmp(line, "CPU part", 8) == 0)) {
            colon[strcspn(colon, "\n")] = '\0';
            snprintf(out, size, "%s", colon + 2);
            break;
        }
    }
    if (file) {
        fclose(file);
    }
#endif
}

const char *machine_isa(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
        return "avx512";
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return "avx2";
    }
    return __builtin_cpu_supports("avx") ? "avx" : "sse2";
#elif defined(__aarch64__)
    return "neon";
#else
    return "generic";
#endif
}

// ---- peaks ----

#define ROUNDS 2000
#define BLOCK_BYTES ((size_t)16 << 10)
#define PER_ROUND 12 // independent operations, enough to hide the latency of two pipes

// The loops are in assembler so that a debug build finds the same peaks. Their values do not
// matter; the registers are set to 0 before.
#define TWELVE(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11)
#define EIGHT(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7)

#if defined(__x86_64__)
#define CLOBBERED                                                                                  \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "memory", "cc"
#define CLEAR(i) "xorps %%xmm" #i ", %%xmm" #i "\n\t"
#define FMA512(i) "vfmadd231ps %%zmm12, %%zmm12, %%zmm" #i "\n\t"
#define FMA256(i) "vfmadd231ps %%ymm12, %%ymm12, %%ymm" #i "\n\t"
// Counted as two operations, because an addps may run at the same time.
#define FMA128(i) "mulps %%xmm12, %%xmm" #i "\n\t"
#define LOAD512(i) "vmovups 64*" #i "(%0), %%zmm" #i "\n\t"
#define LOAD256(i) "vmovups 32*" #i "(%0), %%ymm" #i "\n\t"
#define LOAD128(i) "movups 16*" #i "(%0), %%xmm" #i "\n\t"
#define DEFINE_PEAKS(width, end)                                                                   \
    static void flops_##width(void)                                                                \
    {                                                                                              \
        __asm__ volatile(TWELVE(CLEAR) CLEAR(12)::: CLOBBERED);                                    \
        for (int r = 0; r < ROUNDS; r++) {                                                         \
            __asm__ volatile(TWELVE(FMA##width)::: CLOBBERED);                                     \
        }                                                                                          \
        __asm__ volatile(end ::: "memory");                                                        \
    }                                                                                              \
    static void bytes_##width(const void *block)                                                   \
    {                                                                                              \
        const char *p = block;                                                                     \
        for (size_t i = 0; i < BLOCK_BYTES; i += width) {                                          \
            __asm__ volatile(EIGHT(LOAD##width)::"r"(p + i) : CLOBBERED);                          \
        }                                                                                          \
        __asm__ volatile(end ::: "memory");                                                        \
    }
DEFINE_PEAKS(512, "vzeroupper")
DEFINE_PEAKS(256, "vzeroupper")
DEFINE_PEAKS(128, "")
#elif defined(__aarch64__)
#define CLOBBERED                                                                                  \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "memory"
#define FMA128(i) "fmla v" #i ".4s, v12.4s, v12.4s\n\t"
#define LOAD128(i) "ldr q" #i ", [%0, 16*" #i "]\n\t"
static void flops_128(void)
{
    for (int r = 0; r < ROUNDS; r++) {
        __asm__ volatile(TWELVE(FMA128)::: CLOBBERED);
    }
}
static void bytes_128(const void *block)
{
    const char *p = block;
    for (size_t i = 0; i < BLOCK_BYTES; i += 128) {
        __asm__ volatile(EIGHT(LOAD128)::"r"(p + i) : CLOBBERED);
    }
}
#endif

struct peak {
    void (*flops)(void);
    void (*bytes)(const void *block);
    size_t lanes; // f32 elements of a vector
};

static struct peak choose(void)
{
#if defined(__x86_64__)
    if (strcmp(machine_isa(), "avx512") == 0) {
        return (struct peak){flops_512, bytes_512, 16};
    }
    if (strcmp(machine_isa(), "avx2") == 0) {
        return (struct peak){flops_256, bytes_256, 8};
    }
#endif
    return (struct peak){flops_128, bytes_128, 4};
}

double machine_peak_flops(void)
{
    struct peak peak = choose();
    double best = INFINITY;
    uint64_t end = clock_now_ns(&clock_system) + RUN_NS;

    do {
        uint64_t start = clock_now_ns(&clock_system);
        peak.flops();
        best = fmin(best, (double)(clock_now_ns(&clock_system) - start));
    } while (clock_now_ns(&clock_system) < end);
    return FLOPS_MARGIN * 2.0 * ROUNDS * PER_ROUND * (double)peak.lanes / (best * 1e-9);
}

double machine_peak_bytes(void)
{
    enum { PASSES = 20 };
    struct peak peak = choose();
    uint64_t end = clock_now_ns(&clock_system) + RUN_NS;
    void *block = aligned_alloc(64, BLOCK_BYTES);

    if (!block) {
        return 0;
    }
    memset(block, 0, BLOCK_BYTES);
    double best = INFINITY;
    do {
        uint64_t start = clock_now_ns(&clock_system);
        for (int i = 0; i < PASSES; i++) {
            peak.bytes(block);
        }
        best = fmin(best, (double)(clock_now_ns(&clock_system) - start));
    } while (clock_now_ns(&clock_system) < end);
    free(block);
    return BYTES_MARGIN * (double)(PASSES * BLOCK_BYTES) / (best * 1e-9);
}
