#include "executor/gpu/compile/variant.h"
#include "executor/compile_result.h"
#include "executor/gpu/compile/cubin.h"
#include "proto/verdict.h"
#include <stdlib.h>
#include <string.h>

// Whether a parameter of this many bytes can hold the argument.
static bool fits(const struct manifest_arg *arg, uint64_t size)
{
    switch (arg->kind) {
    case ARG_TENSOR:
    case ARG_EXPECTED:
    case ARG_SCALE:
    case ARG_SCRATCH:
        return size == 8;
    case ARG_TENSORMAP:
        return size == 128;
    case ARG_INTEGER:
    case ARG_SCALAR:
        return size == 4 || size == 8;
    }
    return false;
}

// Refuses the source when the arguments of a launch do not fit the kernel's parameters.
static void check_arguments(const struct variant_source *of, const struct cuda_kernel *kernel)
{
    for (size_t i = 0; i < of->manifest->launch_count; i++) {
        const struct manifest_launch *launch = &of->manifest->launch[i];

        if (strcmp(launch->kernel, kernel->name) != 0) {
            continue;
        }
        if (launch->arg_count != kernel->sizes_count) {
            compile_result_refuse(
                of->compiled, VERDICT_COMPILE_ERROR,
                xasprintf("%s:%u: %s has %zu parameters, this line gives it %zu arguments",
                          of->name, launch->line, launch->kernel, kernel->sizes_count,
                          launch->arg_count));
            return;
        }
        for (size_t k = 0; k < launch->arg_count; k++) {
            if (!fits(&launch->arg[k], kernel->sizes[k])) {
                compile_result_refuse(
                    of->compiled, VERDICT_COMPILE_ERROR,
                    xasprintf("%s:%u: argument %zu does not fit the parameter of %s, which has"
                              " %llu bytes",
                              of->name, launch->line, k + 1, launch->kernel,
                              (unsigned long long)kernel->sizes[k]));
                return;
            }
        }
    }
}

static int take_kernels(const struct variant_source *of, const struct nvrtc_input *input,
                        const struct nvrtc_output *output, struct cuda_variant *variant,
                        struct err *err)
{
    variant->kernels = xcalloc(input->name_count + 1, sizeof(*variant->kernels));
    for (size_t i = 0; i < input->name_count; i++) {
        struct cuda_kernel *kernel = &variant->kernels[i];

        message_init(&cuda_kernel_message, kernel);
        variant->kernels_count = i + 1;
        kernel->name = xstrdup(input->name[i]);
        kernel->symbol = xstrdup(output->symbol[i]);
        int rc = cubin_parameters(&variant->cubin, kernel->symbol, kernel, err);
        if (rc != 0) {
            return rc;
        }
        check_arguments(of, kernel);
    }
    return 0;
}

// Refuses a cubin that the device cannot run. A compiler would not have made it.
static int check_architecture(const struct variant_source *of, const struct bytes *cubin,
                              struct err *err)
{
    unsigned architecture = 0, device = 0;
    int rc = cubin_target(of->target, &device, err);

    if (rc == 0) {
        rc = cubin_architecture(cubin, &architecture, err);
    }
    if (rc == 0 && !cubin_runs_on(architecture, device)) {
        rc = err_set(err, ERR_INVALID,
                     "it is for sm_%u, which a device of %s does not run; compile it for that",
                     architecture, of->target);
    }
    return rc;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// A driver finds one variable of a name. Another one of the same would not be put back before each
// launch; no compiler makes such of one source.
static int check_names(const struct cuda_variant *variant, struct err *err)
{
    size_t count = variant->globals_count;
    const char **name = xcalloc(count + 1, sizeof(*name));
    int rc = 0;

    for (size_t i = 0; i < count; i++) {
        name[i] = variant->globals[i].symbol;
    }
    qsort(name, count, sizeof(*name), by_text);
    for (size_t i = 1; i < count && rc == 0; i++) {
        if (strcmp(name[i - 1], name[i]) == 0) {
            rc = err_set(err, ERR_INVALID, "the compiled code has two variables called %.80s",
                         name[i]);
        }
    }
    free(name);
    return rc;
}

// Fills the variant with what its cubin says.
static int read_variant(const struct variant_source *of, const struct nvrtc_input *input,
                        const struct nvrtc_output *output, struct cuda_variant *variant,
                        struct err *err)
{
    char forbidden[64];
    int rc = cubin_check(&variant->cubin, err);
    if (rc == 0) {
        rc = check_architecture(of, &variant->cubin, err);
    }
    if (rc == 0) {
        rc = cubin_forbidden(&variant->cubin, forbidden, err);
    }
    if (rc != 0) {
        return rc;
    }
    if (forbidden[0] != '\0') {
        compile_result_refuse(
            of->compiled, VERDICT_REJECTED,
            xasprintf("it calls %s, which sealed candidates may not use", forbidden));
    }
    rc = cubin_globals(&variant->cubin, &variant->globals, &variant->globals_count, err);
    if (rc == 0) {
        rc = check_names(variant, err);
    }
    return rc == 0 ? take_kernels(of, input, output, variant, err) : rc;
}

void variant_take(const struct variant_source *of, const struct nvrtc_input *input,
                  struct nvrtc_output *output, struct cuda_variant *variant)
{
    struct err why = ERR_INIT;

    variant->cubin = output->cubin;
    output->cubin = (struct bytes){.len = 0};
    if (read_variant(of, input, output, variant, &why) != 0) {
        compile_result_clean(why.text, strlen(why.text));
        compile_result_refuse(of->compiled, VERDICT_COMPILE_ERROR,
                              xasprintf("%s: %s", of->name, why.text));
    }
}
