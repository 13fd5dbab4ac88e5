// The compile jail with hostile sources, and the probe's checks of both sandboxes.
#include "tests/executor/fixture.h"
#include "tests/executor/sandbox/elf_try.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

struct expectation {
    const char *candidate;
    enum verdict verdict;
    const char *reason; // part of the reason
};

static const struct expectation expectation[] = {
    {"missing_entry", VERDICT_COMPILE_ERROR, "candidate.c does not define `window`"},
    {"empty", VERDICT_COMPILE_ERROR, "candidate.c does not define `window`"},
    {"undefined_helper", VERDICT_COMPILE_ERROR, "uses `helper`"},
    {"syntax", VERDICT_COMPILE_ERROR, "candidate.c:3:16: error: expected ';'"},
    {"signature", VERDICT_COMPILE_ERROR, "conflicting types for 'window'"},
    {"twice", VERDICT_COMPILE_ERROR, "multiple definition of `kcast_entry'"},
    {"binary", VERDICT_COMPILE_ERROR, "error:"},
    {"include_loop", VERDICT_COMPILE_ERROR, "include"},
    {"macro_bomb", VERDICT_COMPILE_ERROR, NULL},
    {"huge_bss", VERDICT_COMPILE_ERROR, "static data takes 10.0 GiB"},
    {"huge_data", VERDICT_COMPILE_ERROR, NULL},
    {"huge_fill", VERDICT_COMPILE_ERROR, "writes more than"},
    {"assembler_loop", VERDICT_COMPILE_ERROR, NULL},
    {"constructor", VERDICT_REJECTED, "constructor"},
    {"hidden_constructor", VERDICT_REJECTED, "dynamic section"},
    {"init_section", VERDICT_REJECTED, "constructor"},
    {"ifunc", VERDICT_REJECTED, "ifunc"},
};

// Sources from which only the sandbox protects the host's files.
static const struct expectation confined[] = {
    {"include_shadow", VERDICT_COMPILE_ERROR, "/etc/shadow: No such file"},
    {"incbin_passwd", VERDICT_COMPILE_ERROR, "/etc/passwd"},
};

static void expect(const struct fixture *fixture, const struct expectation *expected)
{
    char *file = xasprintf("candidates/%s.c", expected->candidate);
    struct compile_plan plan = fixture_compile_plan(fixture, file, false);

    plan.max_memory = (uint64_t)1 << 30;
    struct compile_outcome outcome = fixture_compile(fixture, &plan);
    if (outcome.compiled->verdict != expected->verdict || !outcome.compiled->reason ||
        (expected->reason && !strstr(outcome.compiled->reason, expected->reason))) {
        fail_msg("%s: %s (%s), expected %s with \"%s\"", expected->candidate,
                 verdict_name(outcome.compiled->verdict),
                 outcome.compiled->reason ? outcome.compiled->reason : "-",
                 verdict_name(expected->verdict), expected->reason ? expected->reason : "");
    }
    assert_int_equal(outcome.object.len, 0);
    message_clear(&compile_outcome_message, &outcome);
    free(file);
}

static void hostile_sources_get_a_verdict_and_a_sentence(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(expectation); i++) {
        expect(*state, &expectation[i]);
    }
}

static void jail_has_none_of_the_hosts_files(void **state)
{
    fixture_need_sandbox(*state);
    for (size_t i = 0; i < ARRAY_LEN(confined); i++) {
        expect(*state, &confined[i]);
    }
}

// A file that the host has is none to the assembler in the jail.
static void jail_shows_only_what_a_compiler_needs(void **state)
{
    static const char *const path[] = {"/etc/ld.so.cache",
                                       "/etc/hosts",
                                       "/etc/os-release",
                                       "/proc/self/maps",
                                       "/proc/self/environ",
                                       "/proc/version",
                                       "/sys/kernel/notes",
                                       "/var/lib/dpkg/status",
                                       "/usr/bin/env",
                                       "/usr/bin/sh",
                                       "/bin/sh",
                                       "/usr/sbin/ldconfig",
                                       "/usr/share/common-licenses/GPL-3"};

    fixture_need_sandbox(*state);
    for (size_t i = 0; i < ARRAY_LEN(path); i++) {
        struct compile_plan plan = fixture_compile_plan(*state, "candidates/faster.c", false);
        char *embed = xasprintf(
            "\n__asm__(\".section .rodata\\n.incbin \\\"%s\\\"\\n.text\\n\");\n", path[i]);
        struct strbuf source = STRBUF_INIT;

        strbuf_add(&source, plan.source.data, plan.source.len);
        strbuf_add(&source, embed, strlen(embed));
        bytes_clear(&plan.source);
        plan.source = bytes_copy(source.data, source.len);
        strbuf_release(&source);
        free(embed);
        struct compile_outcome outcome = fixture_compile(*state, &plan);
        if (outcome.compiled->verdict != VERDICT_COMPILE_ERROR ||
            !strstr(outcome.compiled->reason, path[i])) {
            fail_msg("%s can be read", path[i]);
        }
        message_clear(&compile_outcome_message, &outcome);
    }
}

// Calls that have the kernel wait, or work behind the candidate's back, end it.
static void calls_that_wait_are_rejected_by_name(void **state)
{
    static const struct {
        const char *body, *reason;
    } row[] = {
        {"syscall(SYS_membarrier, 1, 0, 0)", "called membarrier"},
        {"madvise((void *)((uintptr_t)y & -4096), 4096, 21)", "called madvise"}, // write it out
        {"madvise((void *)((uintptr_t)y & -4096), 4096, 12)",
         "called madvise"}, // compare with others
    };

    fixture_need_sandbox(*state);
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct compile_plan plan = fixture_compile_plan(*state, "candidates/faster.c", false);
        char *source = xasprintf("#define _GNU_SOURCE\n#include <sys/mman.h>\n"
                                 "#include <sys/syscall.h>\n#include <unistd.h>\n"
                                 "void window(const float *x, float *y, int64_t N)\n"
                                 "{ (void)x; (void)N; (void)!%s; }\n",
                                 row[i].body);

        bytes_clear(&plan.source);
        plan.source = bytes_copy(source, strlen(source));
        free(source);
        struct compile_outcome compiled = fixture_compile(*state, &plan);
        assert_int_equal(compiled.compiled->verdict, VERDICT_NONE);
        struct measure_plan measure = fixture_measure_plan(*state, &compiled.object);
        struct measure_outcome outcome = fixture_measure(*state, &measure);
        assert_int_equal(outcome.result->verdict, VERDICT_REJECTED);
        assert_non_null(strstr(outcome.result->reason, row[i].reason));
        message_clear(&measure_outcome_message, &outcome);
        message_clear(&compile_outcome_message, &compiled);
    }
}

static void compiler_is_stopped_at_its_time(void **state)
{
    struct compile_plan plan = fixture_compile_plan(*state, "candidates/faster.c", false);

    plan.max_seconds = 1e-4; // less than starting a process takes
    struct compile_outcome outcome = fixture_compile(*state, &plan);
    assert_int_equal(outcome.compiled->verdict, VERDICT_COMPILE_ERROR);
    assert_non_null(strstr(outcome.compiled->reason, "longer than"));
    message_clear(&compile_outcome_message, &outcome);
}

static void flags_and_name_are_used(void **state)
{
    struct compile_plan plan = fixture_compile_plan(*state, "candidates/syntax.c", false);

    plan.name = xstrdup("other.c");
    struct compile_outcome outcome = fixture_compile(*state, &plan);
    assert_non_null(strstr(outcome.compiled->reason, "other.c:3:16"));
    message_clear(&compile_outcome_message, &outcome);
    plan = fixture_compile_plan(*state, "candidates/faster.c", false);
    plan.flags = xstrdup("-O1  -DN=5 ");
    plan.name = xstrdup("../../etc/passwd.c"); // replaced by the usual name
    outcome = fixture_compile(*state, &plan);
    assert_non_null(outcome.compiled->reason);
    message_clear(&compile_outcome_message, &outcome);
}

// What is shipped passes the inspection, and the loader finds its entry.
static void shipped_problems_compile_and_load(void **state)
{
    static const char *const name[] = {"conv2d", "histogram", "rmsnorm",  "scan",
                                       "sgemm",  "softmax",   "transpose"};
    struct fixture shipped = *(const struct fixture *)*state;
    struct try_place place;

    try_place_init(&place);
    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        char *json = xasprintf("../../../problems/cpu/%s/problem.json", name[i]);
        struct bytes text = fixture_read(json);
        struct err err = ERR_INIT;
        if (problem_parse(&shipped.problem, (const char *)text.data, text.len, name[i], &err) !=
            0) {
            fail_msg("%s", err.text);
        }
        for (int reference = 0; reference < 2; reference++) {
            char *file = xasprintf("../../../problems/cpu/%s/%s.c", name[i],
                                   reference ? "reference" : "baseline");
            struct bytes object = fixture_object(&shipped, file, reference != 0);
            assert_int_equal(try_load(&place, &object), TRY_LOADED);
            bytes_clear(&object);
            free(file);
        }
        problem_free(shipped.problem);
        bytes_clear(&text);
        free(json);
    }
    try_place_release(&place);
}

static double feature(const struct compiled *compiled, const char *name)
{
    for (size_t i = 0; i < compiled->features_count; i++) {
        if (strcmp(compiled->features[i].name, name) == 0) {
            return compiled->features[i].value;
        }
    }
    fail_msg("there is no feature %s", name);
    return 0;
}

static void object_comes_back_with_its_digest_and_features(void **state)
{
    struct compile_plan plan = fixture_compile_plan(*state, "candidates/faster.c", false);
    struct compile_outcome outcome = fixture_compile(*state, &plan), again;
    struct digest digest = digest_of(outcome.object.data, outcome.object.len);

    assert_int_equal(outcome.compiled->verdict, VERDICT_NONE);
    assert_null(outcome.compiled->reason);
    assert_true(outcome.object.len > 0);
    assert_true(digest_equal(&digest, &outcome.compiled->object));
    assert_true(strncmp(outcome.compiled->toolchain, "gcc ", 4) == 0);
    assert_true(feature(outcome.compiled, "instructions") > 0);
    assert_true(feature(outcome.compiled, "loops") >= 1);
    assert_true(feature(outcome.compiled, "functions") == 1);
    assert_true(feature(outcome.compiled, "entry_bytes") > 0);
    assert_true(feature(outcome.compiled, "object_bytes") == (double)outcome.object.len);
    struct strbuf packed = STRBUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(message_pack(&compile_outcome_message, &outcome, &packed, &err), 0);
    strbuf_release(&packed);
    plan = fixture_compile_plan(*state, "candidates/faster.c", false);
    again = fixture_compile(*state, &plan);
    assert_true(digest_equal(&again.compiled->object,
                             &outcome.compiled->object)); // the same source gives the same object
    message_clear(&compile_outcome_message, &again);
    message_clear(&compile_outcome_message, &outcome);
}

static void probe_finds_the_sandbox_tight(void **state)
{
    const struct fixture *fixture = *state;

    fixture_need_sandbox(fixture);
    struct probe_outcome outcome;
    struct err err = ERR_INIT;
    assert_int_equal(probe_run(&fixture->context, &outcome, &err), 0);
    assert_true(outcome.sandbox);
    assert_null(outcome.reason);
    assert_true(strncmp(outcome.device_class, "cpu/", 4) == 0);
    assert_non_null(strstr(outcome.device_class, "/gcc-"));
    assert_true(outcome.facts_count >= 6);
    for (size_t i = 0; i < outcome.facts_count; i++) {
        assert_true(isfinite(outcome.facts[i].value) && outcome.facts[i].value >= 0);
    }
    message_clear(&probe_outcome_message, &outcome);
}

// In a mount namespace of its own. Returns the exit status: 0 when the probe says so, 77 when there
// can be no such namespace.
static int probe_with_script(const struct fixture *fixture, const char *dir)
{
    static const char script[] = "#!/bin/sh\nexec /usr/bin/gcc \"$@\"\n";
    char *path = xasprintf("%s/gcc", dir);
    struct err err = ERR_INIT;

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(dir, "/usr/local/bin", NULL, MS_BIND, NULL) != 0) {
        return 77;
    }
    struct probe_outcome outcome;
    if (file_replace(path, script, sizeof(script) - 1, false, &err) != 0 || chmod(dir, 0755) != 0 ||
        chmod(path, 0755) != 0 || probe_run(&fixture->context, &outcome, &err) != 0) {
        return 1;
    }
    return !outcome.sandbox && strstr(outcome.reason, "/usr/local/bin/gcc is a script") ? 0 : 2;
}

static void a_gcc_that_is_a_script_is_refused(void **state)
{
    fixture_need_sandbox(*state);
    struct err err = ERR_INIT;
    char *dir;
    assert_int_equal(file_make_temp_dir(&dir, "kcast-gcc", &err), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)syscall(SYS_exit_group, probe_with_script(*state, dir));
    }
    int status = -1;
    process_reap(pid, &status);
    assert_int_equal(file_remove_tree(dir, &err), 0);
    free(dir);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skipped because this user has no mount namespace here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_sources_get_a_verdict_and_a_sentence),
        cmocka_unit_test(jail_has_none_of_the_hosts_files),
        cmocka_unit_test(jail_shows_only_what_a_compiler_needs),
        cmocka_unit_test(calls_that_wait_are_rejected_by_name),
        cmocka_unit_test(compiler_is_stopped_at_its_time),
        cmocka_unit_test(flags_and_name_are_used),
        cmocka_unit_test(shipped_problems_compile_and_load),
        cmocka_unit_test(object_comes_back_with_its_digest_and_features),
        cmocka_unit_test(probe_finds_the_sandbox_tight),
        cmocka_unit_test(a_gcc_that_is_a_script_is_refused),
    };

    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
