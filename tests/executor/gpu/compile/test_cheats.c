// Every candidate of the battery that a GPU measures (tests/cheats/cuda, composed by its script,
// and tests/gpu/sealed) compiles in the real jail, or is refused with the sentence that is
// expected: a cheat that does not compile would show nothing. Skipped where there is no CUDA
// compiler.
#include "common/file.h"
#include "common/mem.h"
#include "executor/cpu/child.h"
#include "executor/gpu/compile/compile.h"
#include "proto/verdict.h"
#include "tests/cheats/candidate_head.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CHEATS_LEAST 60
#define HONEST_LEAST 20
#define SOURCE_MAX ((size_t)1 << 20)

struct fixture {
    struct sandbox_filter filter;
    struct zygote zygote;
    struct cuda_jail jail;
    bool there;
    char reason[ERR_TEXT_MAX];
    char folder[64]; // of the composed candidates
};

static void run(const char *const *argv)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0) {
        fail_msg("%s %s failed", argv[0], argv[1]);
    }
}

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));

    fixture->zygote.socket = -1;
    struct toolkit toolkit;
    struct err err = ERR_INIT;
    if (toolkit_find(&toolkit, &err) != 0) {
        snprintf(fixture->reason, sizeof(fixture->reason), "%s", err.text);
    } else {
        free(toolkit
                 .nvdisasm); // its features are of no interest here, and it takes most of the time
        toolkit.nvdisasm = NULL;
        assert_int_equal(sandbox_filter_build(&fixture->filter, STAGE_COMPILE, &err), 0);
        assert_int_equal(zygote_create(&fixture->zygote, cuda_jail_child, &fixture->filter, &err),
                         0);
        cuda_jail_init(&fixture->jail, &fixture->zygote, &toolkit, false);
        fixture->there = true;
    }
    const char *root = getenv("KCAST_ROOT");
    char *script = xasprintf("%s/tests/cheats/cuda/compose.sh", root ? root : ".");
    snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/kcast-cheats-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    run((const char *const[]){"sh", script, fixture->folder, NULL});
    free(script);
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
    run((const char *const[]){"rm", "-rf", fixture->folder, NULL});
    free(fixture);
    return 0;
}

static struct bytes read_file(const char *folder, const char *name, const char *ending)
{
    struct err err = ERR_INIT;
    struct bytes bytes;
    char *path = xasprintf("%s/%s%s", folder, name, ending);

    if (file_read(&bytes, path, SOURCE_MAX, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(path);
    return bytes;
}

static bool is_ratio_or_later(const char *expect)
{
    return strcmp(expect, "rejected") != 0 && strcmp(expect, "compile-error") != 0;
}

// Whether the outcome is the one that the candidate's head says; says what else it is.
static bool as_expected(const struct candidate_head *head, const char *name,
                        const struct compiled *compiled)
{
    if (compiled->verdict == VERDICT_NONE) {
        if (!is_ratio_or_later(head->expect)) {
            print_message("%s compiles, expected: %s\n", name, head->expect);
            return false;
        }
        return true;
    }
    const char *text = compiled->log ? compiled->log : compiled->reason;
    bool right = strcmp(verdict_name(compiled->verdict), head->expect) == 0 &&
                 (strstr(compiled->reason, head->says) || strstr(text, head->says));
    if (!right) {
        print_message("%s: %s, expected: %s %s\n%.600s\n", name, verdict_name(compiled->verdict),
                      head->expect, head->says, text);
    }
    return right;
}

static bool compile(struct fixture *fixture, const char *name, const struct candidate_head *head,
                    struct bytes *source)
{
    struct compile_plan plan;
    char *problem = xasprintf("problem/%s/problem", head->problem);

    message_init(&compile_plan_message, &plan);
    plan.source = *source;
    plan.problem = read_file(fixture->folder, problem, ".json");
    plan.header = xstrdup("");
    plan.glue = xstrdup("");
    plan.name = xstrdup("candidate.cu");
    plan.language = xstrdup("cuda");
    plan.target = xstrdup("sm_90");
    plan.role = COMPILE_CANDIDATE;
    plan.hidden_seed = 7;
    plan.max_seconds = 60;
    plan.wall_seconds = 1e6;
    plan.max_memory = (uint64_t)4 << 30;
    plan.max_output = (uint64_t)64 << 20;
    struct compile_outcome outcome;
    struct err err = ERR_INIT;
    if (compile_cuda(&plan, &fixture->jail, &outcome, &err) != 0) {
        fail_msg("%s: %s", name, err.text);
    }
    bool right = as_expected(head, name, outcome.compiled);
    assert_int_equal(outcome.object.len > 0, outcome.compiled->verdict == VERDICT_NONE);
    message_clear(&compile_outcome_message, &outcome);
    message_clear(&compile_plan_message, &plan);
    free(problem);
    *source = (struct bytes){.len = 0};
    return right;
}

static int is_source(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 3 && strcmp(entry->d_name + len - 3, ".cu") == 0;
}

// The heads are read everywhere, the sources compiled where there is a compiler.
static void every_candidate_of_the_battery_is_accepted_or_refused_as_expected(void **state)
{
    struct fixture *fixture = *state;
    struct dirent **entry;
    int count = scandir(fixture->folder, &entry, is_source, alphasort);
    size_t cheats = 0, honest = 0, bad = 0;

    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        struct bytes source = read_file(fixture->folder, entry[i]->d_name, "");
        struct candidate_head head;

        if (!candidate_head_read(&head, (const char *)source.data, source.len)) {
            fail_msg("%s does not say what is expected", entry[i]->d_name);
        }
        cheats += strcmp(head.expect, "cheat") == 0;
        honest += strcmp(head.expect, "ratio") == 0;
        if (fixture->there) {
            bad += !compile(fixture, entry[i]->d_name, &head, &source);
        }
        bytes_clear(&source);
        free(entry[i]);
    }
    free(entry);
    assert_true(cheats >= CHEATS_LEAST);
    assert_true(honest >= HONEST_LEAST);
    assert_int_equal(bad, 0);
    if (!fixture->there) {
        printf("skipped because %s\n", fixture->reason);
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            every_candidate_of_the_battery_is_accepted_or_refused_as_expected, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
