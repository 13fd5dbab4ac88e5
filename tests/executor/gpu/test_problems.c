// Every CUDA problem that comes with kernelcast: its reference, its baseline and points spread over
// its template compile for real, in the real jail. Skipped where there is no CUDA compiler.
#include "common/file.h"
#include "common/mem.h"
#include "executor/cpu/child.h"
#include "executor/gpu/compile/compile.h"
#include "executor/gpu/compile/cubin.h"
#include "problem/manifest.h"
#include "problem/template.h"
#include "proto/verdict.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POINTS_LEAST 300 // a template must have at least so many points
#define SAMPLE 4         // points of each template that are compiled
#define PROBLEMS_LEAST 20
#define SOURCE_MAX ((size_t)1 << 20)

struct fixture {
    struct sandbox_filter filter;
    struct zygote zygote;
    struct cuda_jail jail;
    bool there;
    char reason[ERR_TEXT_MAX];
};

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));

    fixture->zygote.socket = -1;
    struct toolkit toolkit;
    struct err err = ERR_INIT;
    if (toolkit_find(&toolkit, &err) != 0) {
        snprintf(fixture->reason, sizeof(fixture->reason), "%s", err.text);
    } else {
        assert_int_equal(sandbox_filter_build(&fixture->filter, STAGE_COMPILE, &err), 0);
        assert_int_equal(zygote_create(&fixture->zygote, cuda_jail_child, &fixture->filter, &err),
                         0);
        cuda_jail_init(&fixture->jail, &fixture->zygote, &toolkit, false);
        fixture->there = true;
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->there) {
        cuda_jail_release(&fixture->jail);
        zygote_release(&fixture->zygote);
        sandbox_filter_release(&fixture->filter);
    }
    free(fixture);
    return 0;
}

static char *folder(void)
{
    const char *root = getenv("KCAST_ROOT");

    return xasprintf("%s/problems/cuda", root ? root : ".");
}

static struct bytes read_file(const char *problem, const char *name)
{
    struct err err = ERR_INIT;
    struct bytes bytes;
    char *path = folder(), *file = xasprintf("%s/%s/%s", path, problem, name);

    if (file_read(&bytes, file, SOURCE_MAX, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(file);
    free(path);
    return bytes;
}

static struct bytes copy(const void *data, size_t len)
{
    struct bytes bytes = {.data = xmalloc(len + 1), .len = len};

    memcpy(bytes.data, data, len);
    bytes.data[len] = 0;
    return bytes;
}

static bool has_kernel(const struct cuda_variant *variant, const char *name)
{
    for (size_t i = 0; i < variant->kernels_count; i++) {
        if (strcmp(variant->kernels[i].name, name) != 0) {
            continue;
        }
        struct cuda_kernel parameters;
        message_init(&cuda_kernel_message, &parameters);
        struct err err = ERR_INIT;
        bool there =
            cubin_parameters(&variant->cubin, variant->kernels[i].symbol, &parameters, &err) == 0;
        message_clear(&cuda_kernel_message, &parameters);
        return there;
    }
    return false;
}

// Checks that every variant's cubin has every kernel that the manifest launches.
static void check_kernels(const char *problem, const char *what, const struct compile_plan *plan,
                          const struct bytes *packed)
{
    struct manifest *manifest = NULL;
    struct problem *parsed = NULL;
    struct cuda_object object;
    struct err err = ERR_INIT;

    if (message_read(&cuda_object_message, &object, packed->data, packed->len, &err) != 0 ||
        problem_parse(&parsed, (const char *)plan->problem.data, plan->problem.len, problem,
                      &err) != 0 ||
        manifest_parse(&manifest, (const char *)plan->source.data, plan->source.len, what, parsed,
                       plan->role == COMPILE_REFERENCE ? MANIFEST_REFERENCE : MANIFEST_CANDIDATE,
                       &err) != 0) {
        fail_msg("%s/%s: %s", problem, what, err.text);
    }
    assert_true(object.variants_count > 0);
    for (size_t i = 0; i < object.variants_count; i++) {
        for (size_t k = 0; k < manifest->launch_count; k++) {
            if (!has_kernel(&object.variants[i], manifest->launch[k].kernel)) {
                fail_msg("%s/%s: variant %zu has no kernel %s", problem, what, i,
                         manifest->launch[k].kernel);
            }
        }
    }
    manifest_free(manifest);
    problem_free(parsed);
    message_clear(&cuda_object_message, &object);
}

static void compile(struct fixture *fixture, const char *problem, const struct bytes *json,
                    const char *what, const void *source, size_t len, enum compile_role role)
{
    struct compile_plan plan;

    message_init(&compile_plan_message, &plan);
    plan.problem = copy(json->data, json->len);
    plan.source = copy(source, len);
    plan.header = xstrdup("");
    plan.glue = xstrdup("");
    plan.name = xstrdup(what);
    plan.language = xstrdup("cuda");
    plan.target = xstrdup("sm_90");
    plan.role = role;
    plan.hidden_seed = 7;
    plan.max_seconds = 120;
    plan.wall_seconds = 1e6;
    plan.max_memory = (uint64_t)8 << 30;
    plan.max_output = (uint64_t)64 << 20;
    struct compile_outcome outcome;
    struct err err = ERR_INIT;
    if (compile_cuda(&plan, &fixture->jail, &outcome, &err) != 0) {
        fail_msg("%s/%s: %s", problem, what, err.text);
    }
    if (outcome.compiled->verdict != VERDICT_NONE) {
        fail_msg("%s/%s: %s: %s\n%s", problem, what, verdict_name(outcome.compiled->verdict),
                 outcome.compiled->reason, outcome.compiled->log ? outcome.compiled->log : "");
    }
    check_kernels(problem, what, &plan, &outcome.object);
    message_clear(&compile_outcome_message, &outcome);
    message_clear(&compile_plan_message, &plan);
}

static void compile_template(struct fixture *fixture, const char *problem, const struct bytes *json)
{
    struct bytes text = read_file(problem, "template.cu");
    struct template *template = NULL;
    struct err err = ERR_INIT;

    if (template_parse(&template, (const char *)text.data, problem, &err) != 0) {
        fail_msg("%s", err.text);
    }
    size_t count = template_point_count(template);
    if (count < POINTS_LEAST) {
        fail_msg("%s: the template has %zu points, at least %d are needed", problem, count,
                 POINTS_LEAST);
    }
    for (size_t i = 0; i < SAMPLE; i++) {
        struct strbuf source = STRBUF_INIT, name = STRBUF_INIT;
        size_t point =
            i * (count - 1) / (SAMPLE - 1); // the sample has the first and the last point

        template_source(template, point, &source);
        template_point_name(template, point, &name);
        compile(fixture, problem, json, strbuf_text(&name), source.data, source.len,
                COMPILE_CANDIDATE);
        strbuf_release(&source);
        strbuf_release(&name);
    }
    template_free(template);
    bytes_clear(&text);
}

static int is_problem(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void every_problem_compiles(void **state)
{
    struct fixture *fixture = *state;

    if (!fixture->there) {
        printf("skipped because %s\n", fixture->reason);
        skip();
    }
    char *path = folder();
    struct dirent **entry;
    int count = scandir(path, &entry, is_problem, alphasort);
    assert_true(count >= PROBLEMS_LEAST);
    for (int i = 0; i < count; i++) {
        const char *name = entry[i]->d_name;
        struct bytes json = read_file(name, "problem.json");
        struct bytes reference = read_file(name, "reference.cu");
        struct bytes baseline = read_file(name, "baseline.cu");

        compile(fixture, name, &json, "reference.cu", reference.data, reference.len,
                COMPILE_REFERENCE);
        compile(fixture, name, &json, "baseline.cu", baseline.data, baseline.len, COMPILE_BASELINE);
        compile_template(fixture, name, &json);
        bytes_clear(&json);
        bytes_clear(&reference);
        bytes_clear(&baseline);
        free(entry[i]);
    }
    free(entry);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_problem_compiles, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
