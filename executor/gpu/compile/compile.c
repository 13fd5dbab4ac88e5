// Design note. A source that specialises on parameters is compiled once for every set of values
// that the cases have which it will meet: check, hidden and benchmark cases for a candidate,
// benchmark cases for a baseline or a reference. Every other source is compiled once. The first
// variant that is refused ends the compilation, and its reason is the outcome's.
#include "executor/gpu/compile/compile.h"
#include "common/clock.h"
#include "executor/compile_result.h"
#include "executor/fact_list.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/features.h"
#include "problem/manifest.h"
#include "proto/verdict.h"
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define CASES_MAX (2 * PROBLEM_CASE_MAX + PROBLEM_HIDDEN_CASES)
#define QUOTE_MAX 400 // bytes of the log that a reason quotes
#define LOG_MAX 65000 // bytes of the log that an outcome carries

struct compilation {
    const struct compile_plan *plan;
    struct cuda_jail *jail;
    struct problem *problem;
    struct manifest *manifest;
    char *source;              // NUL-terminated, owned
    const char *name;          // of the source, for messages
    struct compiled *compiled; // the facts, part of the caller's outcome
    struct cuda_object object;
};

// ---- which variants ----

static size_t collect_cases(const struct compilation *c, struct shape_case out[static CASES_MAX])
{
    const struct problem *problem = c->problem;
    size_t count = 0;

    for (size_t i = 0; i < problem->bench_count; i++) {
        out[count++] = problem->bench[i];
    }
    if (c->plan->role != COMPILE_CANDIDATE) {
        return count;
    }
    for (size_t i = 0; i < problem->check_count; i++) {
        out[count++] = problem->check[i];
    }
    if (problem->has_hidden) {
        count += problem_hidden_cases(problem, c->plan->hidden_seed, out + count);
    }
    return count;
}

// Collects the values of the specialised parameters. Returns how many there are.
static size_t values_of(const struct compilation *c, const struct shape_case *shape,
                        uint64_t out[static PROBLEM_PARAM_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < c->problem->param_count; i++) {
        if (c->manifest->specialized[i]) {
            out[count++] = (uint64_t)shape->i[i];
        }
    }
    return count;
}

static bool is_there(const struct compilation *c, const uint64_t *values, size_t count)
{
    for (size_t i = 0; i < c->object.variants_count; i++) {
        if (count == 0 ||
            memcmp(c->object.variants[i].values, values, count * sizeof(*values)) == 0) {
            return true;
        }
    }
    return false;
}

// ---- one variant ----

static size_t kernel_names(const struct manifest *manifest, const char *out[static NVRTC_NAMES_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < manifest->launch_count; i++) {
        bool known = false;

        for (size_t k = 0; k < count; k++) {
            known = known || strcmp(out[k], manifest->launch[i].kernel) == 0;
        }
        if (!known && count < NVRTC_NAMES_MAX) {
            out[count++] = manifest->launch[i].kernel;
        }
    }
    return count;
}

// Returns the first line of the text that is not blank and has the word, cut to QUOTE_MAX bytes and
// printable, malloc'd; NULL when there is none.
static char *first_line(const char *text, const char *word)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        char *line = xstrndup(text, len < QUOTE_MAX ? len : QUOTE_MAX);

        if (line[strspn(line, " \t\r")] != '\0' && strstr(line, word)) {
            compile_result_clean(line, strlen(line));
            return line;
        }
        free(line);
        text += text[len] == '\n' ? len + 1 : len;
    }
    return NULL;
}

// Whether the compiler says that it gets no more memory.
static bool lacks_memory(const char *text)
{
    static const char *const words[] = {
        "catastrophic error: out of memory", "LLVM ERROR: out of memory",
        "Memory allocation failure",         "std::bad_alloc",
        "NVRTC_ERROR_OUT_OF_MEMORY",         "out of memory\n"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strstr(text, words[i])) {
            return true;
        }
    }
    return false;
}

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
static void check_arguments(struct compilation *c, const struct cuda_kernel *kernel)
{
    for (size_t i = 0; i < c->manifest->launch_count; i++) {
        const struct manifest_launch *launch = &c->manifest->launch[i];

        if (strcmp(launch->kernel, kernel->name) != 0) {
            continue;
        }
        if (launch->arg_count != kernel->sizes_count) {
            compile_result_refuse(
                c->compiled, VERDICT_COMPILE_ERROR,
                xasprintf("%s:%u: %s has %zu parameters, this line gives it %zu arguments", c->name,
                          launch->line, launch->kernel, kernel->sizes_count, launch->arg_count));
            return;
        }
        for (size_t k = 0; k < launch->arg_count; k++) {
            if (!fits(&launch->arg[k], kernel->sizes[k])) {
                compile_result_refuse(
                    c->compiled, VERDICT_COMPILE_ERROR,
                    xasprintf("%s:%u: argument %zu does not fit the parameter of %s, which has"
                              " %llu bytes",
                              c->name, launch->line, k + 1, launch->kernel,
                              (unsigned long long)kernel->sizes[k]));
                return;
            }
        }
    }
}

static int take_kernels(struct compilation *c, const struct nvrtc_input *input,
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
        check_arguments(c, kernel);
    }
    return 0;
}

// Takes over the cubin, which is not trusted, and fills the variant with what it says.
static int take_variant(struct compilation *c, const struct nvrtc_input *input,
                        struct nvrtc_output *output, struct cuda_variant *variant, struct err *err)
{
    variant->cubin = output->cubin;
    output->cubin = (struct bytes){.len = 0};
    char forbidden[64];
    int rc = cubin_forbidden(&variant->cubin, forbidden, err);
    if (rc != 0) {
        return rc;
    }
    if (forbidden[0] != '\0') {
        compile_result_refuse(
            c->compiled, VERDICT_REJECTED,
            xasprintf("it calls %s, which sealed candidates may not use", forbidden));
    }
    rc = take_kernels(c, input, output, variant, err);
    if (rc != 0) {
        return rc;
    }
    return cubin_globals(&variant->cubin, &variant->globals, &variant->globals_count, err);
}

static void add_features(struct compilation *c, const struct nvrtc_output *output,
                         const struct cuda_variant *variant)
{
    struct compiled *compiled = c->compiled;
    uint64_t code = 0, constants = 0;

    cuda_features(output, c->manifest, c->problem, &c->problem->bench[0], c->plan->facts,
                  c->plan->facts_count, &compiled->features, &compiled->features_count);
    struct err ignored = ERR_INIT;
    if (cubin_sizes(&variant->cubin, &code, &constants, &ignored) == 0) {
        fact_list_add(&compiled->features, &compiled->features_count, "code_bytes", (double)code);
        fact_list_add(&compiled->features, &compiled->features_count, "constant_bytes",
                      (double)constants);
    }
    fact_list_add(&compiled->features, &compiled->features_count, "source_bytes",
                  (double)c->plan->source.len);
    fact_list_add(&compiled->features, &compiled->features_count, "kernels",
                  (double)variant->kernels_count);
}

// Refuses a source that the compiler did not survive.
static void refuse_dead(struct compilation *c, const struct cuda_jail_report *report)
{
    const struct compile_plan *plan = c->plan;

    if (lacks_memory(report->words)) {
        compile_result_refuse_memory(c->compiled, plan);
        return;
    }
    if (WIFSIGNALED(report->status) && report->cpu_seconds >= plan->max_seconds) {
        compile_result_refuse_slow(c->compiled, plan); // the limit of processor time
        return;
    }
    char *end = compile_result_end(report->status), *words = first_line(report->words, "");
    bool killed = WIFSIGNALED(report->status) && WTERMSIG(report->status) == SIGKILL;
    char *hint = killed ? xasprintf(", as when compiling takes more memory than there is for all "
                                    "compilations together (%llu MiB are allowed to each)",
                                    (unsigned long long)(plan->max_memory >> 20))
                        : xstrdup("");
    compile_result_refuse(c->compiled, VERDICT_COMPILE_ERROR,
                          xasprintf("the compiler %s when it compiled this%s%s%s", end, hint,
                                    words ? "; it says: " : " and says nothing",
                                    words ? words : ""));
    free(end);
    free(words);
    free(hint);
}

static void refuse_by_end(struct compilation *c, const struct cuda_jail_report *report)
{
    char *words;

    switch (report->end) {
    case CUDA_JAIL_DONE:
        return;
    case CUDA_JAIL_TIMEOUT:
        compile_result_refuse_slow(c->compiled, c->plan);
        return;
    case CUDA_JAIL_TOO_LARGE:
        compile_result_refuse_large(c->compiled, c->plan);
        return;
    case CUDA_JAIL_DIED:
        refuse_dead(c, report);
        return;
    case CUDA_JAIL_LOST:
        words = first_line(report->words, "");
        compile_result_refuse(c->compiled, VERDICT_COMPILE_ERROR,
                              xasprintf("the process in which the compiler runs ended, or gave no "
                                        "answer within the %g seconds allowed%s%s",
                                        c->plan->max_seconds, words ? "; it says: " : "",
                                        words ? words : ""));
        free(words);
        return;
    }
}

// Refuses a source that the compiler refuses, with its first error, or else with its first words,
// or else with what NVRTC calls it.
static void refuse_by_log(struct compilation *c, const struct nvrtc_output *output,
                          const struct cuda_jail_report *report)
{
    if (lacks_memory(output->log) || lacks_memory(report->words) || lacks_memory(output->result)) {
        compile_result_refuse_memory(c->compiled, c->plan);
    }
    static const char *const word[] = {"error", "fatal", ""};
    char *sentence = NULL;
    for (size_t i = 0; i < ARRAY_LEN(word) && !sentence; i++) {
        sentence = first_line(output->log, word[i]);
        sentence = sentence ? sentence : first_line(report->words, word[i]);
    }
    if (!sentence) {
        sentence = xasprintf("the compiler says nothing, and NVRTC calls it %s",
                             output->result[0] ? output->result : "an error without a name");
        compile_result_clean(sentence, strlen(sentence));
    }
    compile_result_refuse(c->compiled, VERDICT_COMPILE_ERROR, sentence);
    if (!c->compiled->log) {
        size_t len = compile_result_fold(output->log, strlen(output->log), LOG_MAX);

        compile_result_clean(output->log, len);
        c->compiled->log = xstrdup(output->log);
    }
}

static int add_variant(struct compilation *c, const struct nvrtc_input *input,
                       struct nvrtc_output *output, const uint64_t *values, size_t value_count,
                       struct err *err)
{
    struct cuda_variant *variant = &c->object.variants[c->object.variants_count++];

    message_init(&cuda_variant_message, variant);
    variant->values = xcalloc(value_count + 1, sizeof(*values));
    memcpy(variant->values, values, value_count * sizeof(*values));
    variant->values_count = value_count;
    int rc = take_variant(c, input, output, variant, err);
    if (rc == 0 && c->object.variants_count == 1) {
        add_features(c, output, variant);
    }
    return rc;
}

static int compile_variant(struct compilation *c, const struct shape_case *shape,
                           const uint64_t *values, size_t value_count, struct err *err)
{
    struct cuda_jail_limits limits = {.seconds = c->plan->max_seconds,
                                      .memory = c->plan->max_memory,
                                      // Once per object, because it takes long.
                                      .disassemble = c->object.variants_count == 0 &&
                                                     c->plan->role != COMPILE_REFERENCE};
    const char *names[NVRTC_NAMES_MAX];
    struct nvrtc_input input = {.file = c->name, .target = c->plan->target, .name = names};
    struct strbuf text = STRBUF_INIT;

    manifest_specialize(c->manifest, c->problem, shape, &text);
    strbuf_adds(&text, "#line 1\n");
    strbuf_adds(&text, c->source);
    input.source = text.data;
    input.name_count = kernel_names(c->manifest, names);
    struct nvrtc_output output = {.compiled = false};
    struct cuda_jail_report report;
    int rc = cuda_jail_compile(c->jail, &input, &limits, &report, &output, err);
    if (rc != 0) {
        goto out;
    }
    refuse_by_end(c, &report);
    if (report.end == CUDA_JAIL_DONE && !output.compiled) {
        refuse_by_log(c, &output, &report);
    }
    if (c->compiled->verdict == VERDICT_NONE) {
        rc = add_variant(c, &input, &output, values, value_count, err);
    }
out:
    nvrtc_output_release(&output);
    strbuf_release(&text);
    return rc;
}

static int compile_variants(struct compilation *c, struct err *err)
{
    struct shape_case shape[CASES_MAX];
    size_t count = collect_cases(c, shape);

    c->object.variants = xcalloc(count, sizeof(*c->object.variants));
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0 && c->compiled->verdict == VERDICT_NONE; i++) {
        uint64_t values[PROBLEM_PARAM_MAX];
        size_t value_count = values_of(c, &shape[i], values);

        if (!is_there(c, values, value_count)) {
            rc = compile_variant(c, &shape[i], values, value_count, err);
        }
    }
    return rc;
}

// ---- the whole object ----

static int take_object(struct compilation *c, struct bytes *ret, struct err *err)
{
    struct strbuf packed;

    strbuf_init(&packed, (size_t)32 << 20);
    c->object.source = c->plan->source;
    c->object.target = c->plan->target;
    int rc = message_pack(&cuda_object_message, &c->object, &packed, err);
    c->object.source = (struct bytes){.len = 0};
    c->object.target = NULL;
    if (rc == 0 && (packed.truncated || packed.len > c->plan->max_output)) {
        compile_result_refuse_large(c->compiled, c->plan);
    } else if (rc == 0) {
        c->compiled->object = digest_of(packed.data, packed.len);
        *ret = strbuf_detach_bytes(&packed);
    }
    strbuf_release(&packed);
    return rc;
}

static int compile_all(struct compilation *c, struct bytes *ret_object, struct err *err)
{
    const struct compile_plan *plan = c->plan;
    int rc = problem_parse(&c->problem, (const char *)plan->problem.data, plan->problem.len,
                           "problem.json", err);

    if (rc == 0 && !c->problem->cuda) {
        rc = err_set(err, ERR_INVALID, "the problem is none for CUDA");
    }
    if (rc != 0) {
        return rc;
    }
    struct err why = ERR_INIT;
    if (manifest_parse(
            &c->manifest, (const char *)plan->source.data, plan->source.len, c->name, c->problem,
            plan->role == COMPILE_REFERENCE ? MANIFEST_REFERENCE : MANIFEST_CANDIDATE, &why) != 0) {
        compile_result_refuse(c->compiled, VERDICT_COMPILE_ERROR, xstrdup(why.text));
        return 0;
    }
    c->source = xstrndup((const char *)plan->source.data, plan->source.len);
    rc = compile_variants(c, err);
    return rc == 0 && c->compiled->verdict == VERDICT_NONE ? take_object(c, ret_object, err) : rc;
}

int compile_cuda(const struct compile_plan *plan, struct cuda_jail *jail,
                 struct compile_outcome *ret, struct err *err)
{
    struct compilation c = {
        .plan = plan, .jail = jail, .name = plan->name ? plan->name : "candidate.cu"};
    uint64_t begin = clock_now_ns(&clock_system);

    if (!plan->target || !plan->problem.data) {
        return err_set(err, ERR_INVALID, "the plan has no target or no problem");
    }
    message_init(&compile_outcome_message, ret);
    message_init(&cuda_object_message, &c.object);
    c.compiled = ret->compiled = xmalloc(sizeof(*ret->compiled));
    message_init(&compiled_message, c.compiled);
    int rc = compile_all(&c, &ret->object, err);
    if (rc == 0) {
        c.compiled->seconds = clock_seconds(clock_now_ns(&clock_system) - begin);
        c.compiled->sandbox = xstrdup(plan->sandbox_off ? "off" : "on");
    } else {
        message_clear(&compile_outcome_message, ret);
    }
    message_clear(&cuda_object_message, &c.object);
    manifest_free(c.manifest);
    problem_free(c.problem);
    free(c.source);
    return rc;
}
