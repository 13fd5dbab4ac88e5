// A disassembler that works, fails, prints too much or never ends. It is run directly, and then in
// the compile jail, where a compilation must succeed whatever the disassembler does. The part with
// the jail is skipped without a CUDA compiler.
#include "common/file.h"
#include "executor/cpu/child.h"
#include "executor/fact_list.h"
#include "executor/gpu/compile/compile.h"
#include "executor/gpu/compile/disassemble.h"
#include "executor/gpu/record/machine_code.h"
#include "proto/verdict.h"
#include "tests/support/gpu_recording.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM 4096
#define LONG_S 60.0 // a limit that nothing here should reach
#define LINES                                                                                      \
    "printf '        /*0000*/   LDG.E R1, desc[UR4][R2.64] ;\\n        /*0010*/ @P0 EXIT ;\\n'\n"

static const char problem[] =
    "{\"name\": \"p\", \"title\": \"p\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"tolerance\": 4}], \"cases\": {\"check\": [{\"n\": 100}],"
    "\"bench\": [{\"params\": {\"n\": 1000}, \"weight\": 1}]},"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}";
static const char source[] = "//@ launch k grid=(1) block=(256) args=(x, y)\n"
                             "extern \"C\" __global__ void k(const float *x, float *y)\n"
                             "{ y[threadIdx.x] = x[threadIdx.x]; }\n";

struct fixture {
    char folder[64];
    char *program, *file;
    struct disassembler disassembler;
    char text[ROOM];
    size_t len;
};

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));

    snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/kcast-disassemble-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    assert_int_equal(chmod(fixture->folder, 0755), 0);
    fixture->program = xasprintf("%s/bin", fixture->folder);
    assert_int_equal(mkdir(fixture->program, 0755), 0);
    free(fixture->program);
    fixture->program = xasprintf("%s/bin/nvdisasm", fixture->folder);
    fixture->file = xasprintf("%s/a.cubin", fixture->folder);
    fixture->disassembler = (struct disassembler){fixture->program, fixture->file};
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    static const char *const left[] = {"bin/nvdisasm", "bin", "a.cubin", "include", "lib64", ""};

    for (size_t i = 0; i < ARRAY_LEN(left); i++) {
        char *path = xasprintf("%s/%s", fixture->folder, left[i]);

        (void)remove(path);
        free(path);
    }
    free(fixture->program);
    free(fixture->file);
    free(fixture);
    return 0;
}

static void be(struct fixture *fixture, const char *commands)
{
    char *script = xasprintf("#!/bin/sh\n%s", commands);
    struct err err = ERR_INIT;

    assert_int_equal(file_replace(fixture->program, script, strlen(script), false, &err), 0);
    assert_int_equal(chmod(fixture->program, 0755), 0);
    free(script);
}

static bool run(struct fixture *fixture, const char *commands, double seconds, size_t room)
{
    be(fixture, commands);
    (void)unlink(fixture->file);
    const struct bytes cubin = {.data = (unsigned char *)(uintptr_t) "a cubin\n", .len = 8};
    return disassemble(&fixture->disassembler, &cubin, seconds, fixture->text, room, &fixture->len);
}

static void expect_text(const struct fixture *fixture, const char *text)
{
    assert_int_equal(fixture->len, strlen(text));
    assert_memory_equal(fixture->text, text, fixture->len);
}

// ---- run directly ----

static void it_is_given_the_cubin_and_nothing_else(void **state)
{
    struct fixture *fixture = *state;

    assert_true(run(fixture, "echo $1 $2; cat $3; cat; echo lost >&2\n", LONG_S, ROOM));
    expect_text(fixture, "-c -ndf\na cubin\n");
    assert_true(run(fixture, "echo $HOME$KCAST_CUDA_HOME $LC_ALL\n", LONG_S, ROOM));
    expect_text(fixture, "C\n");
    assert_true(run(fixture, "exit 0\n", LONG_S, ROOM));
    expect_text(fixture, "");
    if (access("/proc/self/fd", X_OK) ==
        0) { // descriptor 3 is ls's own, and 10 is the script that sh reads
        assert_true(run(fixture, "ls /proc/self/fd | grep -v '^[012]$' | grep -c -v '^3$'; :\n",
                        LONG_S, ROOM));
        expect_text(fixture, "0\n");
    }
}

static void what_fails_gives_nothing(void **state)
{
    struct fixture *fixture = *state;
    const struct disassembler none = {"/nowhere/nvdisasm", fixture->file};

    assert_false(run(fixture, "echo something; exit 1\n", LONG_S, ROOM));
    assert_false(run(fixture, "echo something; kill -9 $$\n", LONG_S, ROOM));
    assert_false(run(fixture, "echo something\n", 0, ROOM));
    (void)unlink(fixture->file);
    const struct bytes cubin = {.data = (unsigned char *)(uintptr_t) "x", .len = 1};
    assert_false(disassemble(&none, &cubin, LONG_S, fixture->text, ROOM, &fixture->len));
    // A file that is there already is not overwritten.
    assert_int_equal(access(fixture->file, F_OK), 0);
    be(fixture, "echo something\n");
    assert_false(
        disassemble(&fixture->disassembler, &cubin, LONG_S, fixture->text, ROOM, &fixture->len));
}

static void what_does_not_end_is_ended(void **state)
{
    struct fixture *fixture = *state;

    assert_false(run(fixture, "while :; do echo on and on; done\n", LONG_S, ROOM));
    assert_false(run(fixture, "exec sleep 1000\n", 0.1, ROOM));
    assert_false(run(fixture, "echo something; exec sleep 1000 >/dev/null\n", 0.1, ROOM));
    assert_false(
        run(fixture, "printf 12345678\n", LONG_S, 8)); // the buffer is full, so text may be missing
    assert_true(run(fixture, "printf 12345678\n", LONG_S, 9));
}

// ---- in the jail ----

// Makes a toolkit like this machine's, but with another disassembler.
static bool make_toolkit(struct fixture *fixture, struct toolkit *ret, bool *ret_visible)
{
    char *include = xasprintf("%s/include", fixture->folder);
    char *lib = xasprintf("%s/lib64", fixture->folder);
    struct toolkit real;
    struct err err = ERR_INIT;
    char *name, *folder;

    if (toolkit_find(&real, &err) != 0) {
        printf("skipped because %s\n", err.text);
        free(include);
        free(lib);
        return false;
    }
    folder = xstrdup(real.nvrtc);
    name = strrchr(folder, '/');
    *name++ = '\0';
    assert_int_equal(symlink(real.include, include), 0);
    assert_int_equal(symlink(folder, lib), 0);
    *ret = (struct toolkit){.root = xstrdup(fixture->folder),
                            .nvrtc = xasprintf("%s/%s", lib, name),
                            .include = include,
                            .nvdisasm = xstrdup(fixture->program)};
    *ret_visible = strncmp(real.root, "/usr/", 5) == 0;
    toolkit_release(&real);
    free(folder);
    free(lib);
    return true;
}

struct own_jail {
    struct sandbox_filter filter;
    struct zygote zygote;
    struct cuda_jail jail;
};

// A jail with such a toolkit. Skips the test where there is no compiler. Returns whether the jail
// sees the toolkit when it is a sandbox; in one there is no shell, which the disassembler is for.
static bool open_jail(struct fixture *fixture, struct own_jail *own, bool sandbox_off)
{
    struct toolkit toolkit;
    bool visible = false;

    if (!make_toolkit(fixture, &toolkit, &visible)) {
        skip();
    }
    struct err err = ERR_INIT;
    assert_int_equal(sandbox_filter_build(&own->filter, STAGE_COMPILE, &err), 0);
    assert_int_equal(zygote_create(&own->zygote, cuda_jail_child, &own->filter, &err), 0);
    cuda_jail_init(&own->jail, &own->zygote, &toolkit, sandbox_off);
    return visible;
}

static void close_jail(struct own_jail *own)
{
    cuda_jail_release(&own->jail);
    zygote_release(&own->zygote);
    sandbox_filter_release(&own->filter);
}

static void compile(struct cuda_jail *jail, enum compile_role role, struct compile_outcome *ret)
{
    struct compile_plan plan;

    message_init(&compile_plan_message, &plan);
    plan.source = bytes_copy(source, strlen(source));
    plan.problem = bytes_copy(problem, strlen(problem));
    plan.header = xstrdup("");
    plan.glue = xstrdup("");
    plan.language = xstrdup("cuda");
    plan.target = xstrdup("sm_90");
    plan.role = role;
    plan.max_seconds = plan.wall_seconds = LONG_S / 4;
    plan.max_memory = (uint64_t)4 << 30;
    plan.max_output = (uint64_t)32 << 20;
    struct err err = ERR_INIT;
    if (compile_cuda(&plan, jail, ret, &err) != 0) {
        fail_msg("%s", err.text);
    }
    message_clear(&compile_plan_message, &plan);
}

// Returns the value of a feature, -1 when it is missing.
static double total_of(struct cuda_jail *jail)
{
    struct compile_outcome outcome;

    compile(jail, COMPILE_CANDIDATE, &outcome);
    assert_int_equal(outcome.compiled->verdict, VERDICT_NONE);
    assert_true(outcome.object.len > 0);
    double total = -1;
    for (size_t i = 0; i < outcome.compiled->features_count; i++) {
        if (strcmp(outcome.compiled->features[i].name, "sass_total") == 0) {
            total = outcome.compiled->features[i].value;
        }
    }
    message_clear(&compile_outcome_message, &outcome);
    return total;
}

static void a_compilation_is_none_the_worse_for_it(void **state)
{
    static const struct {
        const char *commands;
        double total;
    } cases[] = {
        {LINES, 2},
        {"echo no code\n", -1},
        {LINES "exit 1\n", -1},
        {"while :; do\n" LINES "done\n", -1},
        {"exec sleep 1000\n", -1}, // killed before the compilation has to end
        {"head -c 100000 /dev/zero; printf '\\377\\n'\n" LINES, -1}, // a text ends at the first NUL
        {"printf '\\377\\376\\n'\n" LINES, 2},
        {LINES, 2},
    };
    struct fixture *fixture = *state;
    struct own_jail own;

    (void)open_jail(fixture, &own, true);
    be(fixture, LINES);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        be(fixture, cases[i].commands);
        if (total_of(&own.jail) != cases[i].total) {
            fail_msg("%s", cases[i].commands);
        }
    }
    close_jail(&own);
}

// Returns what a recording's image has of machine code, -1 when nothing is known.
static double total_of_recording(struct cuda_jail *jail, const struct cuda_recording *recording)
{
    struct compile_plan plan;
    struct fact *list = NULL;
    size_t count = 0;

    message_init(&compile_plan_message, &plan);
    plan.target = (char[]){"sm_90"};
    plan.max_seconds = plan.wall_seconds = LONG_S;
    plan.max_memory = (uint64_t)4 << 30;
    record_machine_code(recording, &recording->cases[0], &plan, jail, &list, &count);
    double total = fact_list_find(list, count, "sass_total");
    for (size_t i = 0; i < count; i++) {
        message_clear(&fact_message, &list[i]);
    }
    free(list);
    return isnan(total) ? -1 : total;
}

// The disassembler gets the bytes that were recorded.
static void the_image_of_a_recording_is_disassembled_too(void **state)
{
    struct fixture *fixture = *state;
    struct own_jail own;

    (void)open_jail(fixture, &own, true);
    struct problem *of = gpu_recording_problem();
    struct cuda_recording recording;
    gpu_recording_make(&recording, of, "fk_scale", 1);
    struct bytes *image = &recording.images[0].data;
    char *commands = xasprintf("for f in \"$@\"; do :; done\n"
                               "[ \"$(head -c %zu \"$f\" | tail -c 1)\" = '!' ] || exit 1\n"
                               "[ \"$(wc -c <\"$f\")\" -eq %zu ] || exit 1\n" LINES,
                               image->len, image->len);
    image->data[image->len - 1] = '!';
    be(fixture, commands);
    assert_true(total_of_recording(&own.jail, &recording) == 2);
    image->data[image->len - 1] = '?';
    assert_true(total_of_recording(&own.jail, &recording) == -1);
    gpu_recording_clear_nodes(&recording.cases[0]);
    assert_true(total_of_recording(&own.jail, &recording) == -1);
    free(commands);
    message_clear(&cuda_recording_message, &recording);
    problem_free(of);
    close_jail(&own);
}

// A toolkit whose parts are links to elsewhere, and in it a script as disassembler.
static void a_toolkit_of_links_works_in_the_jail_and_a_script_does_not(void **state)
{
    struct fixture *fixture = *state;
    struct own_jail own;

    if (!open_jail(fixture, &own, false)) {
        printf("skipped because the toolkit's folder is hidden in a jail\n");
        close_jail(&own);
        skip();
    }
    be(fixture, LINES);
    assert_true(total_of(&own.jail) == -1);
    close_jail(&own);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(it_is_given_the_cubin_and_nothing_else),
        TEST(what_fails_gives_nothing),
        TEST(what_does_not_end_is_ended),
        TEST(a_compilation_is_none_the_worse_for_it),
        TEST(the_image_of_a_recording_is_disassembled_too),
        TEST(a_toolkit_of_links_works_in_the_jail_and_a_script_does_not),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
