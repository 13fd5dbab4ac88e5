// What kernels do and how long they take. The list is in fake.h.
#include "executor/gpu/arena.h"
#include "executor/gpu/device/kernels_host.h"
#include "executor/gpu/gpu.h"
#include "tests/support/fake_gpu/fake.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAUNCH_NS 20000.0
#define ELEMENT_NS 1.0
#define OWN_NS 2000 // time of each of the executor's kernels
#define CLOCK_GHZ 1.98
#define RESULT_WORDS (ARENA_OPEN + 4 * ARENA_ALIGN) // the executor's: behind a guard
#define STAMPS 8                                    // of them, the first, are two stamps

#define PARAMETER(type, at) (*(type *)parameters[at])

static double uniform(void)
{
    fake.random = fake.random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(fake.random >> 11) / 9007199254740992.0;
}

// Nearly normal, with mean 0 and standard deviation 1: the sum of twelve uniform numbers (Irwin and
// Hall).
static double normal(void)
{
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        sum += uniform();
    }
    return sum;
}

// ---- the executor's kernels ----

static cu_result run_own(const char *symbol, const struct cu_launch *launch, void **parameters)
{
    for (unsigned i = 0; i < kc_host_kernel_count; i++) {
        if (strcmp(kc_host_kernels[i].name, symbol) != 0) {
            continue;
        }
        if (strcmp(symbol, "kc_stamp") == 0) {
            uint64_t *out = PARAMETER(uint64_t *, 0);

            out[0] = fake.stream->ns;
            out[1] = (uint64_t)((double)fake.stream->ns * CLOCK_GHZ);
        }
        kc_host_kernels[i].run(parameters, launch->grid, launch->block);
        if (strcmp(symbol, "kc_spin") == 0) {
            fake.stream->ns += PARAMETER(uint64_t, 0);
        } else if (strcmp(symbol, "kc_health") == 0 && fake_fault(&fake.settings, "sick")) {
            PARAMETER(uint64_t *, 0)[0] ^= 1;
        }
        fake.stream->ns += OWN_NS;
        return CU_OK;
    }
    return CU_NOT_FOUND;
}

// ---- candidates and references ----

struct operation {
    const char *word;
    bool scaled;  // it has the parameter a
    bool updates; // it also reads y
    bool one;     // it has one result
    bool doubles; // a step of a recorded reference, see run_step
};

static const struct operation operations[] = {
    {"axpy", true, true, false, false},       {"scale", true, false, false, false},
    {"copy", false, false, false, false},     {"sum", false, false, true, false},
    {"double", false, false, false, true},    {"times", true, false, false, true},
    {"magnitude", false, false, false, true},
};

// Finds the operation of a symbol, and where its suffixes begin.
static const struct operation *find_operation(const char *symbol, bool *ret_reference,
                                              const char **ret_suffixes)
{
    const char *at = strstr(symbol, "fk_");

    if (!at) {
        return NULL;
    }
    at += 3;
    *ret_reference = strncmp(at, "ref_", 4) == 0;
    at += *ret_reference ? 4 : 0;
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (strncmp(at, operations[i].word, strlen(operations[i].word)) == 0) {
            *ret_suffixes = at + strlen(operations[i].word);
            return &operations[i];
        }
    }
    return NULL;
}

static cu_result breaks(cu_result result)
{
    fake.sticky = result;
    return CU_OK; // the launch itself succeeds; later calls fail
}

static bool are_held(uint64_t count, size_t element, const void *a, const void *b)
{
    return fake_holds((cu_pointer)(uintptr_t)a, count * element) &&
           (!b || fake_holds((cu_pointer)(uintptr_t)b, count * element));
}

static void reference_values(const struct operation *op, const float *x, const float *y, int n,
                             double a, double *out, double *scale)
{
    if (op->one) {
        out[0] = scale[0] = 0;
    }
    for (int i = 0; i < n; i++) {
        if (op->one) {
            out[0] += (double)x[i];
            scale[0] += fabs((double)x[i]);
        } else {
            double before = op->updates ? (double)y[i] : 0, step = a * (double)x[i];

            out[i] = before + step;
            scale[i] = fabs(before) + fabs(step);
        }
    }
}

static cu_result run_reference(const struct operation *op, void **parameters)
{
    int at = 0, n;
    const float *x = PARAMETER(const float *, at++);
    const float *y = op->updates ? PARAMETER(const float *, at++) : NULL;
    double *out = PARAMETER(double *, at++), *scale = PARAMETER(double *, at++), a;
    uint64_t results;

    n = PARAMETER(int, at++);
    a = op->scaled ? PARAMETER(double, at) : 1;
    results = op->one ? 1 : (uint64_t)n;
    if (n < 0 || !are_held((uint64_t)n, sizeof(*x), x, y) ||
        !are_held(results, sizeof(*out), out, scale)) {
        return breaks(CU_ILLEGAL_ADDRESS);
    }
    reference_values(op, x, y, n, a, out, scale);
    fake.stream->ns += 50000 + (uint64_t)n;
    return CU_OK;
}

static cu_result run_step(const struct operation *op, void **parameters)
{
    const void *x = PARAMETER(const void *, 0);
    double *y = PARAMETER(double *, 1);
    bool widens = strcmp(op->word, "double") == 0;
    int n = PARAMETER(int, 2);

    if (n < 0 || !are_held((uint64_t)n, widens ? sizeof(float) : sizeof(double), x, NULL) ||
        !are_held((uint64_t)n, sizeof(*y), y, NULL)) {
        return breaks(CU_ILLEGAL_ADDRESS);
    }
    for (int i = 0; i < n; i++) {
        double value = widens ? (double)((const float *)x)[i] : ((const double *)x)[i];

        y[i] = widens ? value : op->scaled ? (double)PARAMETER(float, 3) * value : fabs(value);
    }
    fake.stream->ns += 20000 + (uint64_t)n;
    return CU_OK;
}

static void honest(const struct operation *op, const float *x, float *y, int n, float a)
{
    double sum = 0;

    for (int i = 0; i < n; i++) {
        if (op->one) {
            sum += (double)x[i];
        } else {
            y[i] = fmaf(a, x[i], op->updates ? y[i] : 0.0f);
        }
    }
    if (op->one) {
        y[0] = (float)sum;
    }
}

// Returns whether the first __device__ variable is still 0, and increments it.
static bool is_fresh_state(const struct cu_function *function)
{
    int *state;

    if (function->module->global_count == 0 || function->module->global[0].size < sizeof(*state)) {
        return true;
    }
    state = (int *)(uintptr_t)function->module->global[0].at;
    return (*state)++ == 0;
}

static void flip_last_bits(float *y, size_t results)
{
    for (size_t i = 0; i < results; i++) {
        uint32_t bits;

        memcpy(&bits, &y[i], sizeof(bits));
        bits ^= uniform() < 0.5;
        memcpy(&y[i], &bits, sizeof(bits));
    }
}

// Writes the results of the first launch again, as many as there were.
static void recall(struct cu_function *function, float *y, size_t bytes)
{
    if (function->memo) {
        memcpy(y, function->memo, bytes < function->memo_size ? bytes : function->memo_size);
    } else if ((function->memo = malloc(bytes))) {
        memcpy(function->memo, y, bytes);
        function->memo_size = bytes;
    }
}

static cu_result use_words(float *y, size_t bytes)
{
    uint64_t *words = (uint64_t *)(uintptr_t)RESULT_WORDS;
    bool found = false;

    if (!fake_holds(RESULT_WORDS, GPU_WORDS_BYTES)) {
        return breaks(CU_ILLEGAL_ADDRESS);
    }
    for (size_t i = STAMPS; i < GPU_SCRATCH_WORDS; i++) {
        found = found || words[i] != 0;
        words[i] = i + 1;
    }
    if (found) {
        memset(y, 0, bytes);
    }
    return CU_OK;
}

// Returns the N of "_wrongN"; 0 when the suffix or the number is missing.
static uint64_t number_after(const char *suffixes, const char *word)
{
    const char *at = strstr(suffixes, word);

    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

// Where the next area behind y begins; NULL: nothing is mapped there.
static float *next_area(const float *y, uint64_t results)
{
    size_t end = (size_t)(uintptr_t)(y + results) + GUARD_BYTES;
    cu_pointer at = (end + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;

    return fake_holds(at, results * sizeof(*y)) ? (float *)(uintptr_t)at : NULL;
}

// Launch number `at` makes good in the next area what the one before it has made wrong in y.
static cu_result mend(struct cu_function *function, float *y, uint64_t results, uint64_t at)
{
    float *last = &y[results - 1], *behind = next_area(y, results);

    if (!behind) {
        return breaks(CU_ILLEGAL_ADDRESS);
    }
    if (function->launches + 1 == at) {
        recall(function, last, sizeof(*last)); // which notes it
        *last = *last * 1.5f + 1;
    } else if (function->launches == at) {
        recall(function, &behind[results - 1], sizeof(*last));
    }
    return CU_OK;
}

static cu_result compute(struct cu_function *function, const struct operation *op,
                         const char *suffixes, void **parameters)
{
    float *x = PARAMETER(float *, 0), *y = PARAMETER(float *, 1);
    int n = PARAMETER(int, 2);
    float a = op->scaled ? PARAMETER(float, 3) : 1;
    uint64_t results = op->one ? 1 : (uint64_t)n;

    if (n <= 0 || !are_held((uint64_t)n, sizeof(*x), x, NULL) ||
        !are_held(results, sizeof(*y), y, NULL)) {
        return breaks(CU_ILLEGAL_ADDRESS);
    }
    if (strstr(suffixes, "_nothing") ||
        (strstr(suffixes, "_count") && function->launches % 2 == 0) ||
        (strstr(suffixes, "_state") && !is_fresh_state(function))) {
        return CU_OK;
    }
    honest(op, x, y, n, a);
    if (strstr(suffixes, "_words")) {
        return use_words(y, results * sizeof(*y));
    }
    if (strstr(suffixes, "_memo")) {
        recall(function, y, results * sizeof(*y));
    } else if (strstr(suffixes, "_zero")) {
        memset(y, 0, results * sizeof(*y));
    } else if (strstr(suffixes, "_clamp")) {
        for (uint64_t i = 0; i < results; i++) {
            y[i] = x[i] > 100 ? a * 100 : y[i];
        }
    } else if (strstr(suffixes, "_wrong")) {
        uint64_t only = number_after(suffixes, "_wrong");

        if (only == 0 || only == function->launches) {
            y[results - 1] = y[results - 1] * 1.5f + 1;
        }
    } else if (strstr(suffixes, "_mend")) {
        return mend(function, y, results, number_after(suffixes, "_mend"));
    } else if (strstr(suffixes, "_nondet")) {
        flip_last_bits(y, results);
    } else if (strstr(suffixes, "_input") ||
               (strstr(suffixes, "_meddle") && function->launches > FAKE_LATER)) {
        x[0] += 1;
    } else if (strstr(suffixes, "_slack")) {
        float *behind = y + (1 << 18);

        if (!fake_holds((cu_pointer)(uintptr_t)behind, sizeof(*behind))) {
            return breaks(CU_ILLEGAL_ADDRESS);
        }
        *behind = -12345;
    } else if (strstr(suffixes, "_behind")) {
        uint64_t only = number_after(suffixes, "_behind");
        float *behind = next_area(y, results);

        if (!behind) {
            return breaks(CU_ILLEGAL_ADDRESS);
        }
        if (only == 0 ? function->launches > FAKE_LATER : only == function->launches) {
            *behind = -12345;
        }
    } else if (strstr(suffixes, "_peek")) {
        if (!fake_holds(ARENA_JUDGE, sizeof(*y))) {
            return breaks(CU_ILLEGAL_ADDRESS);
        }
    } else if (strstr(suffixes, "_forge") && function->launches > FAKE_LATER) {
        for (uint64_t i = 0; i < results; i++) {
            y[i] += 1;
        }
    } else if (strstr(suffixes, "_shift") && function->launches > FAKE_LATER) {
        y[0] += fabsf(y[0]) * 1e-6f;
    } else if (suffixes[0] == '\0' && fake.breaks) {
        y[0] += 1;
    } else if (strstr(suffixes, "_touch") || (suffixes[0] == '\0' && fake.haunts > 0)) {
        float *behind = fake.haunts > 1 ? y + (1 << 18) : next_area(y, results);

        if (!behind || !fake_holds((cu_pointer)(uintptr_t)behind, sizeof(*behind))) {
            return breaks(CU_ILLEGAL_ADDRESS);
        }
        if (fake.haunts > 1) {
            *behind = -12345;
        } else {
            *(uint32_t *)behind ^= 1;
        }
    } else if (strstr(suffixes, "_oob")) {
        if (!fake_holds((cu_pointer)(uintptr_t)(y + results), sizeof(*y))) {
            return breaks(CU_ILLEGAL_ADDRESS);
        }
        y[results] = -12345;
    }
    return CU_OK;
}

// Returns N of "_slowN" as a factor to add, 0 when the suffix is missing.
static double percent_after(const char *suffixes, const char *word)
{
    const char *at = strstr(suffixes, word);

    return at ? strtod(at + strlen(word), NULL) / 100 : 0;
}

static uint64_t duration(const struct cu_function *function, const char *suffixes,
                         const struct cu_launch *launch, int n)
{
    struct fake_settings *s = &fake.settings;
    double ns = LAUNCH_NS + ELEMENT_NS * n, noise = s->noise;
    unsigned threads = launch->block[0] * launch->block[1] * launch->block[2];

    ns *= 1 + percent_after(suffixes, "_slow") - percent_after(suffixes, "_fast");
    if (strstr(suffixes, "_late") && function->launches > FAKE_LATER) {
        ns *= 2;
    }
    if (s->block != 0) {
        ns *= 1 + 0.1 * fabs(log2((double)threads / s->block));
    }
    if (function->module->late) {
        ns *= 1.05;
    }
    if (fake_fault(s, "slow") && fake.launches >= s->fault_at) {
        ns *= 1 + s->fault_percent / 100;
    }
    if (strstr(suffixes, "_tinynoise")) {
        noise /= 10;
    }
    return (uint64_t)fmax(ns * (1 + noise * normal()), 1);
}

bool fake_unpack(const struct cu_function *function, unsigned char *packed, size_t bytes,
                 void *ret[static FAKE_PARAMETER_MAX])
{
    const char *suffixes = "";
    bool reference = false;
    const struct operation *op = find_operation(function->symbol, &reference, &suffixes);
    const size_t size[FAKE_PARAMETER_MAX] = {8, 8, 4, op && op->scaled ? 4 : 0};
    size_t at = 0;

    for (size_t i = 0; i < FAKE_PARAMETER_MAX && op; i++) {
        ret[i] = packed + at;
        at += size[i];
    }
    return !reference && at <= bytes;
}

cu_result fake_run(struct cu_function *function, const struct cu_launch *launch, void **parameters)
{
    if (strncmp(function->symbol, "kc_", 3) == 0) {
        return run_own(function->symbol, launch, parameters);
    }
    const char *suffixes = "";
    bool reference = false;
    const struct operation *op = find_operation(function->symbol, &reference, &suffixes);
    if (op && reference) {
        return run_reference(op, parameters);
    }
    if (op && op->doubles) {
        return run_step(op, parameters);
    }
    if (strstr(suffixes, "_toobig")) {
        return CU_LAUNCH_OUT_OF_RESOURCES;
    }
    function->launches++;
    fake.launches++;
    if (fake_fault(&fake.settings, "dies") && fake.launches >= fake.settings.fault_at) {
        return breaks(214); // CUDA_ERROR_ECC_UNCORRECTABLE
    } else if (strstr(suffixes, "_hang") ||
               (strstr(suffixes, "_stall") && fake_fault(&fake.settings, "stall") &&
                unlink(fake.settings.fault_file) == 0)) {
        fake.hung = fake.stream->hung = true;
        return CU_OK;
    } else if (strstr(suffixes, "_fault") || (op && suffixes[0] == '\0' && fake.kills)) {
        return breaks(CU_ILLEGAL_ADDRESS);
    } else if (strstr(suffixes, "_misaligned")) {
        return breaks(CU_MISALIGNED_ADDRESS);
    } else if (strstr(suffixes, "_assert")) {
        return breaks(CU_ASSERT);
    }
    fake.breaks |= !!strstr(suffixes, "_breaker");
    fake.kills |= !!strstr(suffixes, "_killer");
    fake.haunts = strstr(suffixes, "_haunter2")  ? 2
                  : strstr(suffixes, "_haunter") ? 1
                                                 : fake.haunts;
    cu_result result = CU_OK;
    if (op) {
        result = compute(function, op, suffixes, parameters);
    }
    fake.stream->ns += duration(function, suffixes, launch, op ? PARAMETER(int, 2) : 0);
    return result;
}
