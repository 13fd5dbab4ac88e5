// Whole searches by the real kcast against a daemon and a worker that invent their answers: what
// they find, what ends them, and what is kept after interruptions, lost daemons and full disks.
#include "tests/client/search/search_fixture.h"

#include "client/policy/allocation.h"

#define FIRST_MAX 64 // kinds of events

static void search_finds_the_best_and_measures_little(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "whole");
    const char *const argument[] = {"search",       f->problem, "--run",   path, "--seed", "3",
                                    "--candidates", "0",        "--batch", "4",  "--json", NULL};
    forget(f);
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    assert_int_equal(outcome.status, 0);
    json_auto_t *object = summary_of(&outcome);
    assert_non_null(object);
    assert_int_equal(json_integer_value(json_object_get(object, "considered")), 60);
    const json_t *best = json_object_get(object, "best");
    assert_non_null(strstr(json_string_value(json_object_get(best, "name")), "A=8 B=4"));
    assert_true(fabs(json_number_value(json_object_get(best, "speedup")) - exp2(1.502)) < 1e-6);
    assert_non_null(strstr(outcome.err, "A=8 B=4"));
    struct run_state run_state;
    load(&run_state, path);
    assert_true(run_state.finished);
    assert_string_equal(run_state.finish_reason, "every candidate considered");
    assert_int_equal(run_state.candidate_count, 60);
    assert_true(run_state.trusted > 2);
    assert_int_equal(run_state.trust_count, 1);
    assert_string_equal(run_state.trust[0].forecaster, "fake");
    assert_true(run_state.trust[0].cut > 0.1); // it said 0.1 or less of all that did not improve
    assert_true(run_state.reused > 0);
    assert_true(run_state.compile_failed > 0);
    assert_true(
        run_state.measured + run_state.trusted + run_state.reused + run_state.compile_failed == 60);
    assert_true(run_state_incumbent_log2(&run_state) > 1.4);
    for (size_t i = (size_t)run_state.observed_candidates; i < run_state.candidate_count; i++) {
        assert_null(run_state.candidate[i].result); // all outcomes were told
    }
    run_state_release(&run_state);
    clear(&outcome);
    free(path);
}

static void decisions_do_not_depend_on_timing(void **state)
{
    struct fixture *f = *state, other = *f;
    char *path_a = run_path(f, "timing-a"), *path_b = run_path(f, "timing-b");
    struct run_state a, b;
    fake_start(&other.fake, 4711);
    search(f, 0, NULL, path_a);
    search(&other, 0, NULL, path_b);
    load(&a, path_a);
    load(&b, path_b);
    assert_same_decisions(&a, &b, "none");
    run_state_release(&a);
    run_state_release(&b);
    fake_stop(&other.fake);
    free(path_a);
    free(path_b);
}

// Checks with how much under way a search was begun, and for what.
static void assert_width(const struct run_started *started, uint64_t wide, uint64_t lag,
                         uint64_t devices, uint64_t compile_slots)
{
    assert_int_equal(started->batch, 4);
    assert_int_equal(started->wide, wide);
    assert_int_equal(started->lag, lag);
    assert_int_equal(started->pool_devices, devices);
    assert_int_equal(started->pool_compile_slots, compile_slots);
}

static void a_search_is_as_wide_as_its_pool(void **state)
{
    struct fixture *f = *state, other = *f;
    char *path = run_path(f, "pool-one"), *path_many = run_path(f, "pool-many");
    const char *const fewer[] = {"search", f->problem, "--run",        path_many, "--lag", "3",
                                 "--wide", "5",        "--candidates", "8",       NULL};
    struct run_state run_state;
    // Every other device of a daemon that invents its answers is drained.
    fake_start_as(&other.fake, 7, own_url(),
                  &(struct fake_behaviour){.devices = 7, .compile_slots = 64});
    search(f, 0, NULL, path);
    load(&run_state, path);
    assert_width(&run_state.started, 4, 8, 1, 0);
    assert_true(isnan(run_state.started.worker_seconds)); // one device needs not ask
    run_state_release(&run_state);
    search(&other, 0, NULL, path_many);
    load(&run_state, path_many);
    assert_width(&run_state.started, 5, 16, 4, 64);
    assert_true(run_state.started.worker_seconds == 0.01);
    run_state_release(&run_state);
    (void)unlink(path_many);
    expect(&other, 0, NULL, fewer);
    load(&run_state, path_many);
    assert_width(&run_state.started, 5, 3, 4, 64);
    run_state_release(&run_state);
    fake_stop(&other.fake);
    free(path);
    free(path_many);
}

static void a_resumed_search_keeps_its_width_whatever_the_pool_is_then(void **state)
{
    struct fixture *f = *state, many = *f;
    char *path = run_path(f, "width-whole"), *killed = run_path(f, "width-killed");
    struct run_state a, b;
    fake_start_as(&many.fake, 7, own_url(),
                  &(struct fake_behaviour){.devices = 7, .compile_slots = 64});
    search(&many, 0, NULL, path);
    search(&many, -SIGKILL, "event:60", killed);
    fake_stop(&many.fake);
    forget(f);
    resume(f, 0, killed); // where there is one device
    load(&a, path);
    load(&b, killed);
    assert_width(&b.started, 5, 16, 4, 64);
    assert_same_decisions(&a, &b, "another pool");
    run_state_release(&a);
    run_state_release(&b);
    free(path);
    free(killed);
}

static void what_improves_is_given_more_and_all_is_considered_in_the_end(void **state)
{
    struct fixture *f = *state;
    char *pool = useless_pool(f), *names = xasprintf("pool:%s,tunable", pool);
    char *path = run_path(f, "half"), *whole = run_path(f, "all");
    const char *const half[] = {"search",  f->problem, "--run",  path, "--seed",       "3",
                                "--batch", "4",        "--wide", "4",  "--candidates", "48",
                                "-g",      names,      NULL};
    const char *const all[] = {"search", f->problem, "--run",        whole, "--seed", "3",
                               "-g",     names,      "--candidates", "0",   "--json", NULL};
    forget(f);
    expect(f, 0, NULL, half);
    struct run_state run_state;
    load(&run_state, path);
    struct allocation_share share[2];
    allocation_shares(&run_state, run_state.candidate_count, 2, share);
    if (share[1].considered < 2 * share[0].considered || share[0].considered < 4) {
        fail_msg("useless %llu, useful %llu", (unsigned long long)share[0].considered,
                 (unsigned long long)share[1].considered);
    }
    assert_true(share[1].improvements > 0 && share[1].gain_log2 > 1.4);
    assert_int_equal(share[0].improvements, 0);
    run_state_release(&run_state);
    forget(f);
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, all), &outcome);
    assert_int_equal(outcome.status, 0);
    json_auto_t *object = summary_of(&outcome);
    const json_t *generators = json_object_get(object, "generators");
    assert_int_equal(json_array_size(generators), 2);
    for (size_t i = 0; i < 2; i++) { // each point of each, once
        const json_t *row = json_array_get(generators, i);
        assert_int_equal(json_integer_value(json_object_get(row, "considered")), 60);
        assert_true(json_number_value(json_object_get(row, "cost")) > 0);
    }
    load(&run_state, whole);
    assert_int_equal(run_state.candidate_count, 120);
    assert_string_equal(run_state.finish_reason, "no generator has more candidates");
    run_state_release(&run_state);
    clear(&outcome);
    free(pool);
    free(names);
    free(path);
    free(whole);
}

// The worker knows 48 sources. Other generators give the rest, and the search ends without error.
static void a_language_model_with_nothing_new_leaves_the_search(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "leaves");
    const char *const argument[] = {"search", f->problem,     "--run", path,      "--seed",
                                    "3",      "--candidates", "0",     "--batch", "4",
                                    "-g",     "llm,tunable",  NULL};
    forget(f);
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    assert_int_equal(outcome.status, 0);
    assert_non_null(strstr(outcome.err, "the generator llm has left the search"));
    struct run_state run_state;
    load(&run_state, path);
    assert_true(run_state.asking[0].over);
    struct allocation_share share[2];
    allocation_shares(&run_state, run_state.candidate_count, 2, share);
    assert_in_range(share[0].considered, 20, 48);
    assert_int_equal(share[1].considered, 60);
    run_state_release(&run_state);
    clear(&outcome);
    free(path);
}

static void interrupt_keeps_everything_and_says_how_to_go_on(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "interrupted");
    const char *const argument[] = {"search", f->problem, "--run", path, "--seed",
                                    "5",      "--batch",  "4",     NULL};
    struct kcast_result outcome;
    collect(f, spawn(f, "interrupt:40", argument), &outcome);
    assert_int_equal(outcome.status, EXIT_INTERRUPTED);
    char *hint = xasprintf("kcast resume %s", path);
    assert_non_null(strstr(outcome.err, hint));
    clear(&outcome);
    resume(f, 0, path);
    resume(f, 0, path); // the run is finished, so this prints the summary again
    free(hint);
    free(path);
}

static void daemon_that_loses_everything_is_given_the_same_jobs_again(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "restart");
    const char *const argument[] = {"search",  f->problem,     "--run", path,      "--seed",
                                    "11",      "--candidates", "28",    "--batch", "4",
                                    "--audit", "0.3",          NULL};
    struct fake_process other;
    fake_start(&other, 3);
    char *pool = xasprintf("--pool=%s", other.pool);
    const char *const full[] = {pool,        argument[0],  argument[1],  argument[2], argument[3],
                                argument[4], argument[5],  argument[6],  argument[7], argument[8],
                                argument[9], argument[10], argument[11], NULL};
    forget(f);
    pid_t pid = spawn(f, "pause:50", full);
    int status;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    fake_stop(&other);
    fake_start_at(&other, 3, other.pool);
    kill(pid, SIGCONT);
    struct kcast_result outcome;
    collect(f, pid, &outcome);
    if (outcome.status != 0) {
        fail_msg("%s", outcome.err);
    }
    struct run_state run_state;
    load(&run_state, path);
    assert_true(run_state.finished);
    run_state_release(&run_state);
    clear(&outcome);
    fake_stop(&other);
    free(pool);
    free(path);
}

static void unreachable_daemon_is_one_sentence_and_leaves_no_run(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "nobody");
    const char *const argument[] = {"search", f->problem, "--run", path, "--pool=tcp://127.0.0.1:9",
                                    NULL};
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    assert_int_equal(outcome.status, EXIT_UNREACHABLE);
    assert_int_equal(strncmp(outcome.err, "kcast: ", 7), 0);
    assert_ptr_equal(strchr(outcome.err, '\n'), outcome.err + strlen(outcome.err) - 1);
    assert_false(file_exists(path));
    clear(&outcome);
    free(path);
}

static void without_a_worker_everything_is_measured_and_said_once(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "no-worker");
    const char *const argument[] = {
        "search", f->problem, "--run", path, "--candidates", "20", "--worker=tcp://127.0.0.1:9",
        NULL};
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    assert_int_equal(outcome.status, 0);
    const char *said = strstr(outcome.err, "no forecasts");
    assert_non_null(said);
    assert_null(strstr(said + 1, "no forecasts"));
    struct run_state run_state;
    load(&run_state, path);
    assert_int_equal(run_state.trusted, 0);
    assert_int_equal(run_state.measured + run_state.reused + run_state.compile_failed, 20);
    run_state_release(&run_state);
    clear(&outcome);
    free(path);
}

// Searches with these options, and checks what was asked of the compilations of 12 candidates.
static void compiles_for(struct fixture *f, const char *name, const char *option, const char *other,
                         bool incomplete, bool no_machine_code)
{
    char *path = run_path(f, name);
    const char *const argument[] = {"search",       f->problem, "--run", path,  "--seed", "3",
                                    "--candidates", "12",       option,  other, NULL};
    expect(f, 0, NULL, argument);
    struct run_state run_state;
    load(&run_state, path);
    assert_int_equal(run_state.candidate_count, 12);
    assert_true(run_state.baseline->incomplete); // it is only forecast from
    assert_int_equal(run_state.baseline->no_machine_code, no_machine_code);
    size_t measured = 0;
    for (size_t i = 0; i < run_state.candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state.candidate[i];
        if (!candidate->compiled || candidate->compiled->verdict != VERDICT_NONE) {
            continue;
        }
        assert_int_equal(candidate->compiled->incomplete, incomplete);
        assert_int_equal(candidate->compiled->no_machine_code, no_machine_code);
        if (candidate->result) {
            const struct compiled *rest = candidate->result->compiled;
            assert_int_equal(!rest, !incomplete);
            assert_true(!rest || (!digest_is_zero(&rest->object) && rest->features_count == 0));
            measured++;
        }
    }
    assert_true(measured > 0);
    run_state_release(&run_state);
    free(path);
}

static void as_much_is_compiled_as_somebody_needs(void **state)
{
    struct fixture *f = *state;
    compiles_for(f, "forecast", NULL, NULL, true, true);
    compiles_for(f, "instructions", "--machine-code", NULL, true, false);
    compiles_for(f, "measured", "--no-worker", NULL, false, true);
    compiles_for(f, "space", "--no-worker", "--machine-code", false, false);
}

static void limits_end_the_search(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "limit-n"), *path_b = run_path(f, "limit-b");
    const char *const by_count[] = {"search", f->problem,    "--run",   path, "--measurements",
                                    "9",      "--no-worker", "--batch", "4",  NULL};
    const char *const by_time[] = {"search", f->problem, "--run", path_b,     "--budget",
                                   "3s",     "--batch",  "4",     "--policy", "all",
                                   "--seed", "7",        NULL};
    expect(f, 0, NULL, by_count);
    struct run_state run_state;
    load(&run_state, path);
    assert_int_equal(run_state.measured, 9);
    assert_string_equal(run_state.finish_reason, "9 measurements made");
    run_state_release(&run_state);
    expect(f, 0, NULL, by_time);
    load(&run_state, path_b);
    if (run_state.device_seconds <= 1.5 || run_state.device_seconds >= 5) {
        fail_msg("%g device-seconds, %s", run_state.device_seconds, run_state.finish_reason);
    }
    assert_int_equal(run_state.trusted, 0);
    run_state_release(&run_state);
    free(path);
    free(path_b);
}

static void one_run_has_one_driver_but_two_runs_go_on_at_once(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "first"), *path_b = run_path(f, "second");
    const char *const argument[] = {"search",       f->problem, "--run", path,
                                    "--candidates", "20",       NULL};
    const char *const again[] = {"resume", path, NULL};
    const char *const other[] = {"search", f->problem, "--run", path_b, "--candidates", "20", NULL};
    int status;
    pid_t pid = spawn(f, "pause:10", argument);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    expect(f, EXIT_BUSY, NULL, again);
    expect(f, EXIT_INVALID, NULL, argument); // the file exists
    expect(f, EXIT_OK, NULL, other);
    kill(pid, SIGCONT);
    struct kcast_result outcome;
    collect(f, pid, &outcome);
    assert_int_equal(outcome.status, 0);
    clear(&outcome);
    free(path);
    free(path_b);
}

static void full_disk_loses_nothing(void **state)
{
    struct fixture *f = *state;
    char *script = xasprintf("mount -t tmpfs -o size=200k none %s/small || exit 99\n"
                             "cd %s/small || exit 99\n"
                             "%s --pool=%s --worker=%s -q search %s --run a.run --batch 4\n"
                             "[ $? -eq 7 ] || exit 1\n"
                             "mount -o remount,size=20m %s/small || exit 99\n"
                             "cp a.run ../small.run\n"
                             "%s --pool=%s --worker=%s -q resume a.run >/dev/null || exit 2\n"
                             "cp a.run ../grown.run\n",
                             f->folder, f->folder, f->kcast, f->fake.pool, f->fake.worker,
                             f->problem, f->folder, f->kcast, f->fake.pool, f->fake.worker);
    char *small = xasprintf("%s/small", f->folder), *grown = run_path(f, "grown");
    struct err error = ERR_INIT;
    assert_int_equal(file_make_dirs(small, &error), 0);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("unshare", "unshare", "-rm", "sh", "-c", script, NULL);
        _exit(99);
    }
    int status;
    waitpid(pid, &status, 0);
    free(script);
    free(small);
    if (WEXITSTATUS(status) == 99) {
        free(grown);
        skip(); // user namespaces are not available
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    struct run_state run_state;
    load(&run_state, grown);
    assert_true(run_state.finished);
    run_state_release(&run_state);
    free(grown);
}

static void run_of_another_version_is_refused_and_not_touched(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "version");
    unsigned char format[4] = {0, 0, 0, 99}; // user_version is at byte 60 of a database
    search(f, 0, NULL, path);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, format, 4, 60), 4);
    close(fd);
    char *before = read_text(path);
    resume(f, EXIT_VERSION, path);
    char *after = read_text(path);
    assert_memory_equal(before, after, 100);
    free(before);
    free(after);
    free(path);
}

// Owner is the number of the first event of each kind.
static int note_first(void *owner, struct run_event *event, struct err *err)
{
    uint64_t *first = owner;
    (void)err;
    assert_in_range(event->kind, 1, FIRST_MAX - 1);
    if (first[event->kind] == 0) {
        first[event->kind] = event->sequence;
    }
    return 0;
}

static void candidates_are_compiled_beside_the_baseline(void **state)
{
    static const char *const generator[] = {"tunable", "llm"};
    for (size_t i = 0; i < ARRAY_LEN(generator); i++) {
        struct fixture *f = *state;
        char *path = run_path(f, generator[i]);
        const char *const argument[] = {"search",     f->problem,     "--run", path, "--generator",
                                        generator[i], "--candidates", "12",    NULL};
        expect(f, 0, NULL, argument);
        uint64_t first[FIRST_MAX] = {0};
        struct run *run = NULL;
        struct err error = ERR_INIT;
        assert_int_equal(run_open_read(&run, path, &error), 0);
        assert_int_equal(run_replay(run, 0, note_first, first, &error), 0);
        run_close(run);
        free(path);
        // A language model is told of the baseline's features before it proposes anything.
        assert_int_equal(first[RUN_PROPOSED] < first[RUN_BASELINE], i == 0);
        assert_true(first[RUN_PROPOSED] > 0 && first[RUN_BASELINE] > 0);
        assert_true(first[RUN_BASELINE] < first[RUN_COMPILED]);
        assert_true(first[RUN_BASELINE] < first[RUN_FORECAST]);
        assert_true(first[RUN_BASELINE] < first[RUN_DECIDED]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_compiled_beside_the_baseline),
        cmocka_unit_test(search_finds_the_best_and_measures_little),
        cmocka_unit_test(decisions_do_not_depend_on_timing),
        cmocka_unit_test(a_search_is_as_wide_as_its_pool),
        cmocka_unit_test(a_resumed_search_keeps_its_width_whatever_the_pool_is_then),
        cmocka_unit_test(interrupt_keeps_everything_and_says_how_to_go_on),
        cmocka_unit_test(daemon_that_loses_everything_is_given_the_same_jobs_again),
        cmocka_unit_test(unreachable_daemon_is_one_sentence_and_leaves_no_run),
        cmocka_unit_test(without_a_worker_everything_is_measured_and_said_once),
        cmocka_unit_test(as_much_is_compiled_as_somebody_needs),
        cmocka_unit_test(limits_end_the_search),
        cmocka_unit_test(one_run_has_one_driver_but_two_runs_go_on_at_once),
        cmocka_unit_test(full_disk_loses_nothing),
        cmocka_unit_test(run_of_another_version_is_refused_and_not_touched),
        cmocka_unit_test(what_improves_is_given_more_and_all_is_considered_in_the_end),
        cmocka_unit_test(a_language_model_with_nothing_new_leaves_the_search),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
