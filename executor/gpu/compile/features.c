// Design note. Instructions are counted as they stand in the PTX, all kernels together; how often
// they are executed is not known. Registers, spills and shared memory are the greatest values in
// ptxas's table, which is part of the log and has a row for each kernel. Occupancy is that of the
// launch with the most threads.
#include "executor/gpu/compile/features.h"
#include "executor/fact_list.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/sass.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_MOST 32       // that a multiprocessor runs at once
#define REGISTER_UNIT 256    // a warp gets registers in multiples of this
#define SHARED_RESERVED 1024 // bytes of shared memory that the system takes for each block

// ---- PTX ----

// A feature, and the beginnings of the opcodes that it counts.
static const struct class
{
    const char *name;
    const char *opcode[8];
} classes[] = {
    {"ptx_fma_f32", {"fma.rn.f32", "fma.rn.ftz.f32", "mad.f32"}},
    {"ptx_fma_f64", {"fma.rn.f64"}},
    {"ptx_fma_half", {"fma.rn.f16", "fma.rn.bf16"}},
    {"ptx_add_f32", {"add.f32", "add.ftz.f32", "add.rn.f32", "sub.f32", "sub.ftz.f32"}},
    {"ptx_mul_f32", {"mul.f32", "mul.ftz.f32", "mul.rn.f32"}},
    {"ptx_special", {"ex2.", "lg2.", "rcp.", "rsqrt.", "sqrt.", "sin.", "cos.", "tanh."}},
    {"ptx_divide", {"div."}},
    {"ptx_mma", {"mma.sync", "wmma.mma", "wgmma.mma_async"}},
    {"ptx_convert", {"cvt."}},
    {"ptx_load_global", {"ld.global", "ldu.global"}},
    {"ptx_store_global", {"st.global"}},
    {"ptx_load_shared", {"ld.shared", "ldmatrix", "wmma.load"}},
    {"ptx_store_shared", {"st.shared", "stmatrix", "wmma.store"}},
    {"ptx_load_local", {"ld.local"}},
    {"ptx_store_local", {"st.local"}},
    {"ptx_async_copy", {"cp.async", "cp.bulk"}},
    {"ptx_atomic", {"atom.", "red."}},
    {"ptx_barrier", {"bar.", "barrier."}},
    {"ptx_shuffle", {"shfl."}},
    {"ptx_branch", {"bra", "brx"}},
    {"ptx_integer", {"add.s", "add.u", "mad.lo", "mul.lo", "mul.wide", "shl.", "shr.", "and."}},
    {"ptx_select", {"setp.", "selp."}},
};

static const char *skip_predicate(const char *line)
{
    line += strspn(line, " \t");
    if (*line == '@') {
        line += strcspn(line, " \t\n");
        line += strspn(line, " \t");
    }
    return line;
}

static bool begins(const char *text, const char *with)
{
    return with && strncmp(text, with, strlen(with)) == 0;
}

static void count_line(const char *line, double count[static ARRAY_LEN(classes)],
                       double *vector_loads)
{
    line = skip_predicate(line);
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        for (size_t k = 0; k < ARRAY_LEN(classes[i].opcode); k++) {
            if (begins(line, classes[i].opcode[k])) {
                count[i]++;
                break;
            }
        }
    }
    if (begins(line, "ld.global")) {
        size_t len = strcspn(line, " \t\n");

        for (size_t k = 0; k + 3 < len; k++) {
            *vector_loads += begins(line + k, ".v2") || begins(line + k, ".v4");
        }
    }
}

static void add_ptx(const char *ptx, struct fact **list, size_t *count)
{
    double counted[ARRAY_LEN(classes)] = {0}, vector_loads = 0, lines = 0;

    for (const char *line = ptx; line && *line != '\0';) {
        const char *end = strchr(line, '\n');

        if (line[0] == '\t' || line[0] == ' ') {
            count_line(line, counted, &vector_loads);
            lines += end && end > line && end[-1] == ';';
        }
        line = end ? end + 1 : NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        fact_list_add(list, count, classes[i].name, counted[i]);
    }
    fact_list_add(list, count, "ptx_vector_loads", vector_loads);
    fact_list_add(list, count, "ptx_instructions", lines);
}

// ---- ptxas ----

// What ptxas reports.
struct usage {
    double registers, spill_stores, spill_loads, stack, shared, barriers;
};

// Returns the number in front of the words in the line from `line` to `end`, 0 when there is none.
static double number_before(const char *line, const char *end, const char *words)
{
    const char *at = strstr(line, words);

    if (!at || at > end) {
        return 0;
    }
    while (at > line && (at[-1] == ' ')) {
        at--;
    }
    while (at > line && at[-1] >= '0' && at[-1] <= '9') {
        at--;
    }
    return strtod(at, NULL);
}

static void read_usage(const char *log, struct usage *ret)
{
    *ret = (struct usage){.registers = 0};
    for (const char *line = log; line && *line != '\0';) {
        const char *end = strchr(line, '\n');
        const char *stop = end ? end : line + strlen(line);

        ret->registers = fmax(ret->registers, number_before(line, stop, "registers"));
        ret->spill_stores =
            fmax(ret->spill_stores, number_before(line, stop, "bytes spill stores"));
        ret->spill_loads = fmax(ret->spill_loads, number_before(line, stop, "bytes spill loads"));
        ret->stack = fmax(ret->stack, number_before(line, stop, "bytes stack frame"));
        ret->shared = fmax(ret->shared, number_before(line, stop, "bytes smem"));
        ret->barriers = fmax(ret->barriers, number_before(line, stop, "barriers"));
        line = end ? end + 1 : NULL;
    }
}

static struct usage usage_of(const struct cubin_usage *usage)
{
    return (struct usage){.registers = usage->registers,
                          .stack = usage->stack_bytes,
                          .shared = (double)usage->shared_bytes};
}

// The same of a cubin that no ptxas has reported on, as far as it says so.
static void read_usage_of_cubin(const struct bytes *cubin, struct usage *ret)
{
    struct cubin_usage usage = {.registers = 0};
    struct err ignored = ERR_INIT;

    (void)!cubin_usage(cubin, NULL, &usage, &ignored);
    *ret = usage_of(&usage);
}

static void add_usage(const struct usage *usage, struct fact **list, size_t *count)
{
    fact_list_add(list, count, "registers", usage->registers);
    fact_list_add(list, count, "stack_bytes", usage->stack);
    fact_list_add(list, count, "shared_static_bytes", usage->shared);
}

// ---- launches ----

// Returns how many blocks of a launch a multiprocessor runs at once.
static double blocks_at_once(const struct usage *usage, double threads, double smem,
                             const struct fact *device, size_t count)
{
    double warps = ceil(threads / 32);
    double units = ceil(usage->registers * 32 / REGISTER_UNIT) * REGISTER_UNIT;
    double by_threads =
        floor(fact_list_find(device, count, "threads_per_multiprocessor") / threads);
    double by_registers =
        floor(fact_list_find(device, count, "registers_per_multiprocessor") / (units * warps));
    double by_shared = floor(fact_list_find(device, count, "shared_bytes_per_multiprocessor") /
                             (smem + usage->shared + SHARED_RESERVED));

    return fmin(fmin(BLOCKS_MOST, by_threads), fmin(by_registers, by_shared));
}

size_t cuda_largest_form(const struct cuda_form *form, size_t count)
{
    size_t largest = 0;

    for (size_t i = 1; i < count; i++) {
        if (form[i].blocks * form[i].threads > form[largest].blocks * form[largest].threads) {
            largest = i;
        }
    }
    return largest;
}

static void add_forms(const struct usage *usage, const struct cuda_form *form, size_t form_count,
                      const struct fact *device, size_t device_count, struct fact **list,
                      size_t *count)
{
    double multiprocessors = fact_list_find(device, device_count, "multiprocessors");
    struct cuda_form largest = {.blocks = 0};

    if (form_count > 0) {
        largest = form[cuda_largest_form(form, form_count)];
    }
    fact_list_add(list, count, "launches", (double)form_count);
    fact_list_add(list, count, "grid_blocks", largest.blocks);
    fact_list_add(list, count, "block_threads", largest.threads);
    fact_list_add(list, count, "shared_dynamic_bytes", largest.smem);
    if (largest.threads <= 0 || isnan(multiprocessors)) {
        return;
    }
    double at_once = blocks_at_once(usage, largest.threads, largest.smem, device, device_count);
    fact_list_add(list, count, "blocks_per_multiprocessor", at_once);
    fact_list_add(list, count, "occupancy",
                  at_once * largest.threads /
                      fact_list_find(device, device_count, "threads_per_multiprocessor"));
    if (at_once > 0) {
        fact_list_add(list, count, "waves", largest.blocks / (at_once * multiprocessors));
    }
}

static void add_launches(const struct usage *usage, const struct manifest *manifest,
                         const struct problem *problem, const struct shape_case *shape,
                         const struct fact *device, size_t device_count, struct fact **list,
                         size_t *count)
{
    struct cuda_form *form = xcalloc(manifest->launch_count + 1, sizeof(*form));
    size_t launches = 0;

    for (size_t i = 0; i < manifest->launch_count; i++) {
        struct err ignored = ERR_INIT;
        struct manifest_shape of;

        if (manifest_launch_shape(manifest, i, shape, problem, &of, &ignored) == 0 && !of.skipped) {
            form[launches++] =
                (struct cuda_form){.blocks = (double)of.grid[0] * of.grid[1] * of.grid[2],
                                   .threads = (double)of.block[0] * of.block[1] * of.block[2],
                                   .smem = of.smem};
        }
    }
    add_forms(usage, form, launches, device, device_count, list, count);
    free(form);
}

static void add_roofline(const struct problem *problem, const struct shape_case *shape,
                         const struct fact *device, size_t device_count, struct fact **list,
                         size_t *count)
{
    double flops, bytes, seconds;
    struct err ignored = ERR_INIT;

    if (problem_work(problem, shape, &flops, &bytes, &ignored) != 0) {
        return;
    }
    char name[32];
    (void)snprintf(name, sizeof(name), "peak_flops_%s", work_unit_name(problem->unit));
    seconds = fmax(flops / fact_list_find(device, device_count, name),
                   bytes / fact_list_find(device, device_count, "peak_bytes"));
    fact_list_add(list, count, "flops_per_byte", flops / fmax(bytes, 1));
    if (isfinite(seconds) && seconds > 0) {
        fact_list_add(list, count, "roofline_ns", seconds * 1e9);
    }
}

void cuda_features(const struct nvrtc_output *output, const struct bytes *cubin,
                   const struct manifest *manifest, const struct problem *problem,
                   const struct shape_case *shape, const struct fact *device, size_t device_count,
                   struct fact **list, size_t *count)
{
    struct usage usage;

    if (output->ptx) {
        read_usage(output->log, &usage);
        fact_list_add(list, count, "spill_store_bytes", usage.spill_stores);
        fact_list_add(list, count, "spill_load_bytes", usage.spill_loads);
        fact_list_add(list, count, "barriers", usage.barriers);
    } else {
        read_usage_of_cubin(cubin, &usage);
    }
    add_usage(&usage, list, count);
    add_launches(&usage, manifest, problem, shape, device, device_count, list, count);
    add_roofline(problem, shape, device, device_count, list, count);
    if (output->ptx) {
        add_ptx(output->ptx, list, count);
    }
    if (output->sass) {
        sass_features(output->sass, strlen(output->sass), list, count);
    }
}

void cuda_features_of_forms(const struct cubin_usage *usage, const struct cuda_form *form,
                            size_t form_count, const struct problem *problem,
                            const struct shape_case *shape, const struct fact *device,
                            size_t device_count, struct fact **list, size_t *count)
{
    const struct usage own = usage_of(usage);

    add_usage(&own, list, count);
    add_forms(&own, form, form_count, device, device_count, list, count);
    add_roofline(problem, shape, device, device_count, list, count);
}
