// The program that streams new data to a GPU, on the fake one: the problems that it takes compile
// and are launched with all that their manifests ask for, and what it cannot run is refused by
// name.
#include "client/problem/problem_dir.h"
#include "problem/template.h"
#include "tests/gpu/stream_run.h"
#include "tests/support/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 20 // more than the ring has slots

struct fixture {
    struct stream_device device;
    struct nvrtc *nvrtc; // NULL: no compiler
};

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    struct toolkit toolkit;
    struct err err = ERR_INIT;

    gpu_fake_use("noise=0");
    assert_int_equal(stream_device_find(&fixture->device, &err), 0);
    assert_int_equal(stream_device_start(&fixture->device, &err), 0);
    if (toolkit_find(&toolkit, &err) == 0) {
        assert_int_equal(nvrtc_open(&fixture->nvrtc, &toolkit, &err), 0);
        toolkit_release(&toolkit);
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    stream_device_stop(&fixture->device);
    nvrtc_close(fixture->nvrtc);
    free(fixture);
    return 0;
}

static void need_compiler(const struct fixture *fixture)
{
    if (!fixture->nvrtc) {
        print_message("skipped because there is no CUDA compiler\n");
        skip();
    }
}

static void load(const char *name, struct problem_dir *ret)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/problems/cuda/%s", root ? root : ".", name);
    struct err err = ERR_INIT;

    assert_int_equal(problem_dir_load(ret, path, &err), 0);
    free(path);
}

static void compile_point(struct fixture *fixture, const struct problem_dir *dir, size_t number,
                          struct stream_code *ret)
{
    struct template *template = NULL;
    struct strbuf source = STRBUF_INIT;
    struct err err = ERR_INIT;

    assert_int_equal(
        template_parse(&template, (const char *)dir->template_source.data, "template", &err), 0);
    template_source(template, number % template_point_count(template), &source);
    if (stream_code_compile(ret, fixture->nvrtc, "sm_90", dir->problem, source.data, "point",
                            &err) != 0) {
        fail_msg("%s: %s", dir->problem->name, err.text);
    }
    strbuf_release(&source);
    template_free(template);
}

// Runs the case and checks that every launch took the 20 us for each of its kernels that the fake
// takes for those that it does not know.
static void run_case(struct fixture *fixture, struct stream_case *of)
{
    struct stream_times times;
    struct err err = ERR_INIT;

    if (stream_run(&fixture->device, of, &times, &err) != 0) {
        fail_msg("%s: %s", of->problem->name, err.text);
    }
    for (size_t arm = 0; arm < of->arms; arm++) {
        for (size_t i = 0; i < of->rounds; i++) {
            assert_true(times.ns[arm][i] > 19e3 && times.ns[arm][i] < 200e3);
        }
        free(times.ns[arm]);
    }
}

static void run_problem(struct fixture *fixture, const char *name, size_t point)
{
    struct problem_dir dir;
    struct stream_code baseline, candidate;
    struct err err = ERR_INIT;

    load(name, &dir);
    struct stream_case of = {
        .problem = dir.problem, .code = {&baseline, &candidate}, .arms = 2, .rounds = ROUNDS};
    assert_int_equal(stream_code_compile(&baseline, fixture->nvrtc, "sm_90", dir.problem,
                                         (const char *)dir.baseline.data, "baseline", &err),
                     0);
    compile_point(fixture, &dir, point, &candidate);
    for (size_t t = 0; t < dir.problem->tensor_count; t++) {
        if (dir.problem->tensor[t].direction != DIRECTION_OUT) {
            assert_int_equal(draw_create(&of.draw[t], &dir.problem->tensor[t], 1, &err), 0);
        }
    }
    for (size_t i = 0; i < dir.problem->check_count; i++) {
        of.shape = &dir.problem->check[i];
        run_case(fixture, &of);
    }
    for (size_t t = 0; t < dir.problem->tensor_count; t++) {
        draw_free(of.draw[t]);
    }
    stream_code_release(&baseline);
    stream_code_release(&candidate);
    problem_dir_release(&dir);
}

static void the_problems_are_launched_as_their_manifests_say(void **state)
{
    static const struct {
        const char *name;
        size_t point;
    } problems[] = {{"axpy", 500},    {"reduce_sum", 1100}, {"softmax", 1200}, {"layernorm", 300},
                    {"sgemm", 20000}, {"transpose", 700},   {"histogram", 90}, {"scan", 60}};
    struct fixture *fixture = *state;

    need_compiler(fixture);
    for (size_t i = 0; i < sizeof(problems) / sizeof(*problems); i++) {
        run_problem(fixture, problems[i].name, problems[i].point);
    }
}

static void what_it_cannot_run_is_refused_by_name(void **state)
{
    struct fixture *fixture = *state;
    struct problem_dir dir;
    struct stream_code code;
    struct err err = ERR_INIT;

    need_compiler(fixture);
    load("axpy", &dir);
    const struct {
        const char *source, *words;
        int rc;
    } sources[] = {
        {"//@ specialize N\n//@ launch k grid=(1) block=(1) args=(x)\n", "s specialises",
         ERR_UNSUPPORTED},
        {"//@ launch k grid=(1) block=(1) args=(x)\nextern \"C\" __global__ void k(float *x) { y; "
         "}\n",
         "s does not compile: ", ERR_INVALID},
        {"extern \"C\" __global__ void k(float *x) {}\n", "launch", ERR_INVALID},
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
        err = (struct err)ERR_INIT;
        assert_int_equal(stream_code_compile(&code, fixture->nvrtc, "sm_90", dir.problem,
                                             sources[i].source, "s", &err),
                         sources[i].rc);
        assert_non_null(strstr(err.text, sources[i].words));
        stream_code_release(&code);
    }
    problem_dir_release(&dir);
}

static void arguments_that_do_not_fit_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct problem_dir dir;
    struct stream_code code;
    struct stream_times times;
    struct err err = ERR_INIT;

    need_compiler(fixture);
    load("axpy", &dir);
    assert_int_equal(stream_code_compile(&code, fixture->nvrtc, "sm_90", dir.problem,
                                         "//@ launch k grid=(1) block=(1) args=(x, y)\n"
                                         "extern \"C\" __global__ void k(float *x) { *x = 1; }\n",
                                         "s", &err),
                     0);
    struct stream_case of = {.problem = dir.problem,
                             .shape = &dir.problem->check[0],
                             .code = {&code},
                             .arms = 1,
                             .rounds = 1};
    assert_int_equal(stream_run(&fixture->device, &of, &times, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "kernel k: it has 1 parameters"));
    free(times.ns[0]);
    stream_code_release(&code);
    problem_dir_release(&dir);
}

static void an_arm_that_computes_something_else_is_seen(void **state)
{
    static const char *const kernel[] = {"fk_copy", "fk_copy_nondet", "fk_copy_nothing",
                                         "fk_copy_zero"};
    struct fixture *fixture = *state;
    struct problem_dir dir;
    struct stream_code code[4];
    struct stream_times times;
    struct err err = ERR_INIT;

    need_compiler(fixture);
    load("softmax", &dir);
    struct stream_case of = {
        .problem = dir.problem, .shape = &dir.problem->check[0], .arms = 4, .rounds = 1};
    for (size_t i = 0; i < 4; i++) {
        char *source = xasprintf("//@ launch %s grid=(1) block=(1) args=(x, y, R * N)\n"
                                 "extern \"C\" __global__ void %s(const float *x, float *y, int n)"
                                 " {}\n",
                                 kernel[i], kernel[i]);
        assert_int_equal(stream_code_compile(&code[i], fixture->nvrtc, "sm_90", dir.problem, source,
                                             kernel[i], &err),
                         0);
        of.code[i] = &code[i];
        free(source);
    }
    assert_int_equal(draw_create(&of.draw[0], &dir.problem->tensor[0], 1, &err), 0);
    assert_int_equal(stream_run(&fixture->device, &of, &times, &err), 0);
    assert_true(times.agrees[0] && times.agrees[1]);
    assert_false(times.agrees[2] || times.agrees[3]);
    for (size_t i = 0; i < 4; i++) {
        free(times.ns[i]);
        stream_code_release(&code[i]);
    }
    draw_free(of.draw[0]);
    problem_dir_release(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_problems_are_launched_as_their_manifests_say),
        cmocka_unit_test(what_it_cannot_run_is_refused_by_name),
        cmocka_unit_test(an_arm_that_computes_something_else_is_seen),
        cmocka_unit_test(arguments_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
