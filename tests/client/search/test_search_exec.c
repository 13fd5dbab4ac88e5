// Searches whose candidates programs propose (--generator exec:), by the real kcast against a
// daemon that invents its answers. Programs here are scripts; the candidate of a request follows
// from its number, unless the program is one that fails.
#include "tests/client/search/search_fixture.h"
#include "tests/support/until.h"

#include <dirent.h>

// Prints "count" candidates, and notes the request.
static const char good[] = "read -r line\n"
                           "draw=${line#*\\\"draw\\\":} draw=${draw%%,*}\n"
                           "count=${line#*\\\"count\\\":} count=${count%%,*}\n"
                           "echo \"$draw\" >>\"$0.log\"\n"
                           "i=0\n"
                           "while [ $i -lt $count ]; do\n"
                           "    printf '{\"name\":\"of %s\",\"source\":\"#define A %s\\\\n#define "
                           "B 1\\\\n#define C %s\\\\n\"}\\n' "
                           "$draw $((1 << (draw + i) % 4)) $((draw * 10 + i))\n"
                           "    i=$((i + 1))\n"
                           "done\n";

// Prints three times as many as it was asked for, of which some are much better than others.
static const char plenty[] =
    "read -r line\n"
    "draw=${line#*\\\"draw\\\":} draw=${draw%%,*}\n"
    "count=${line#*\\\"count\\\":} count=${count%%,*}\n"
    "i=0\n"
    "while [ $i -lt $((3 * count)) ]; do\n"
    "    printf '{\"source\":\"#define A %s\\\\n#define B %s\\\\n#define C %s\\\\n\"}\\n' "
    "$((1 << (draw + i) % 4)) $((1 << (draw / 3 + i / 2) % 4)) $((draw * 100 + i))\n"
    "    i=$((i + 1))\n"
    "done\n";

// Writes a script; the caller frees the path.
static char *script(struct fixture *f, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", f->folder, name);
    char *whole = xasprintf("#!/bin/sh\n%s", text);

    assert_int_equal(file_replace(path, whole, strlen(whole), false, NULL), 0);
    assert_int_equal(chmod(path, 0700), 0);
    free(whole);
    return path;
}

static struct kcast_result run(struct fixture *f, const char *fault, const char *path,
                               const char *generators, const char *time)
{
    const char *const argument[] = {"search",       f->problem, "--run",       path,
                                    "--seed",       "5",        "--batch",     "4",
                                    "--candidates", "40",       "--exec-time", time,
                                    "--generator",  generators, "--exec-jobs", "3",
                                    "--policy",     "all",      NULL};
    struct kcast_result outcome;

    forget(f);
    collect(f, spawn(f, fault, argument), &outcome);
    return outcome;
}

// Whether a process has this text among its arguments.
static bool somebody_has(const char *text)
{
    DIR *all = opendir("/proc");
    char *own = xasprintf("%d", getpid());
    bool found = false;

    assert_non_null(all);
    for (struct dirent *entry; (entry = readdir(all));) {
        char *path = xasprintf("/proc/%s/cmdline", entry->d_name);
        char line[4096];
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = fd >= 0 ? read(fd, line, sizeof(line)) : -1;

        if (len > 0 && strcmp(entry->d_name, own) != 0) {
            found |= !!memmem(line, (size_t)len, text, strlen(text));
        }
        if (fd >= 0) {
            close(fd);
        }
        free(path);
    }
    closedir(all);
    free(own);
    return found;
}

static void programs_propose_and_are_told_what_became_of_it(void **state)
{
    struct fixture *f = *state;
    char *keeps = xasprintf("exec:tee -a %s/requests | ", f->folder);
    char *program = script(f, "good", good), *path = run_path(f, "good");
    char *names = xasprintf("%s%s", keeps, program);
    struct kcast_result outcome = run(f, NULL, path, names, "10m");
    struct run_state run_state;

    if (outcome.status != 0) {
        fail_msg("%s", outcome.err);
    }
    load(&run_state, path);
    assert_int_equal(run_state.candidate_count, 40);
    assert_string_equal(run_state.finish_reason, "40 candidates considered");
    assert_int_equal(strncmp(run_state.candidate[0].proposed.name, "of ", 3), 0);
    assert_true(run_state.incumbent_count > 0);
    run_state_release(&run_state);
    char *requests = xasprintf("%s/requests", f->folder), *text = read_text(requests);
    size_t with_best = 0;
    for (char *at = text; *at != '\0'; at += strcspn(at, "\n") + 1) {
        json_auto_t *each = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
        with_best += json_is_real(json_object_get(json_object_get(each, "best"), "speedup"));
    }
    assert_true(with_best > 0);
    char *last = strrchr(text, '\n');
    assert_non_null(last);
    *last = '\0';
    json_auto_t *line = json_loads(strrchr(text, '\n') + 1, 0, NULL);
    assert_non_null(line);
    assert_int_equal(json_integer_value(json_object_get(line, "schema")), 1);
    assert_non_null(json_object_get(json_object_get(line, "problem"), "contract"));
    const json_t *results = json_object_get(line, "results");
    assert_true(json_array_size(results) >= 4);
    const json_t *first = json_array_get(results, 0);
    assert_int_equal(json_integer_value(json_object_get(first, "candidate")), 1);
    assert_non_null(strstr(json_string_value(json_object_get(first, "source")), "#define A"));
    clear(&outcome);
    free(text);
    free(requests);
    free(keeps);
    free(names);
    free(path);
    free(program);
}

// Python in which // divides: what differs behind it differs. The first comment is the name.
static void candidates_in_python_are_told_apart(void **state)
{
    struct fixture *f = *state;
    char *program =
        script(f, "python",
               "read -r line\ndraw=${line#*\\\"draw\\\":} draw=${draw%%,*}\n"
               "printf '{\"source\":\"# 4*%s way\\\\ndef f(x):\\\\n x // %s\\\\n\"}\\n' 1 "
               "$draw\n");
    char *path = run_path(f, "python"), *names = xasprintf("exec:%s", program);
    struct kcast_result outcome = run(f, NULL, path, names, "10m");
    struct run_state run_state;

    load(&run_state, path);
    assert_int_equal(run_state.candidate_count, 40);
    assert_string_equal(run_state.candidate[39].proposed.name, "4*1 way");
    run_state_release(&run_state);
    clear(&outcome);
    free(names);
    free(path);
    free(program);
}

static void a_program_that_fails_is_one_sentence(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text, *says;
        const char *time;
        bool brings; // a candidate, before it fails
    } row[] = {
        {"echo no idea >&2; exit 3", "it ended with exit code 3: no idea", "10m", false},
        {"exec /nowhere/to/be/found", "it ended with exit code 127: ", "10m", false},
        {"kill -SEGV $$", "it ended with exit code 139: Segmentation fault", "10m", false},
        {"exec tail -f /dev/null", "it did not end within 0.3 s and was killed", "300ms", false},
        {"yes", "it wrote more than 16777216 bytes and was killed", "10m", false},
        {"yes >&2", "it did not end within 2 s and was killed: y", "2s", false},
        {"echo garbage", "its output is no candidate: line 1: no JSON: ", "10m", false},
        {"echo '{\"name\":\"x\"}'", "line 1: \"source\" is missing, empty or no text", "10m",
         false},
        {"cat >/dev/null", "it wrote no candidate", "10m", false},
        {"echo '{\"source\":\"#define A 2\\\\n#define B 1\\\\n#define C 7\\\\n\"}'; echo "
         "'{\"sour'; exit 1",
         "it ended with exit code 1", "10m", true},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char *program = script(f, "bad", row[i].text), *path = run_path(f, "alone");
        char *both = run_path(f, "both"), *names = xasprintf("exec:%s", program);
        struct kcast_result outcome = run(f, NULL, path, names, row[i].time);

        if (outcome.status != (row[i].brings ? 0 : EXIT_UNREACHABLE) ||
            !strstr(outcome.err, row[i].says)) {
            fail_msg("%s: %d: %s", row[i].text, outcome.status, outcome.err);
        }
        clear(&outcome);
        char *with = xasprintf("%s,tunable", names);
        outcome = run(f, NULL, both, with, row[i].time);
        if (outcome.status != 0 || !strstr(outcome.err, row[i].says)) {
            fail_msg("%s, others: %d: %s", row[i].text, outcome.status, outcome.err);
        }
        clear(&outcome);
        (void)unlink(path);
        (void)unlink(both);
        free(with);
        free(names);
        free(both);
        free(path);
        free(program);
    }
}

static void proposing_the_same_again_ends_the_search_in_order(void **state)
{
    struct fixture *f = *state;
    char *program = script(f, "same", "echo '{\"source\":\"#define A 2\\\\n\"}'");
    char *path = run_path(f, "same"), *names = xasprintf("exec:%s", program);
    struct kcast_result outcome = run(f, NULL, path, names, "10m");
    struct run_state run_state;

    assert_int_equal(outcome.status, 0);
    load(&run_state, path);
    assert_int_equal(run_state.candidate_count, 1);
    assert_string_equal(run_state.finish_reason, "no more new candidates came");
    run_state_release(&run_state);
    clear(&outcome);
    free(names);
    free(path);
    free(program);
}

// Whatever the search had of answers is in its file: nobody is asked again for what was answered.
static void killed_at_any_event_it_goes_on_without_asking_again(void **state)
{
    struct fixture *f = *state;
    char *program = script(f, "steady", good), *path = run_path(f, "undisturbed");
    char *names = xasprintf("exec:%s", program), *killed = run_path(f, "killed");
    struct kcast_result outcome = run(f, NULL, path, names, "10m");
    struct run_state expected, run_state;

    assert_int_equal(outcome.status, 0);
    clear(&outcome);
    load(&expected, path);
    for (uint64_t n = 4; n < expected.last_sequence; n += 23) {
        char *fault = xasprintf("%s:%llu", n % 2 == 0 ? "before" : "event", (unsigned long long)n);

        outcome = run(f, fault, killed, names, "10m");
        assert_int_equal(outcome.status, -SIGKILL);
        clear(&outcome);
        resume(f, 0, killed);
        load(&run_state, killed);
        assert_same_decisions(&expected, &run_state, fault);
        assert_int_equal(run_state.ask_count, expected.ask_count);
        assert_int_equal(run_state.proposals, expected.proposals);
        run_state_release(&run_state);
        (void)unlink(killed);
        free(fault);
    }
    run_state_release(&expected);
    free(killed);
    free(names);
    free(path);
    free(program);
}

// What a candidate of `plenty` is worth.
static double worth_of(struct run *run, const struct digest *source)
{
    struct bytes text;
    struct err error = ERR_INIT;
    int a, b;

    assert_int_equal(run_get_blob(run, source, &text, &error), 0);
    assert_int_equal(sscanf((char *)text.data, "#define A %d\n#define B %d", &a, &b), 2);
    bytes_clear(&text);
    return fake_log2(a, b);
}

static struct kcast_result run_plenty(struct fixture *f, const char *fault, const char *path,
                                      const char *generators)
{
    const char *const argument[] = {
        "search",  f->problem, "--run",      path, "--seed",       "5",        "--batch",  "4",
        "--wide",  "4",        "--lag",      "2",  "--candidates", "48",       "--policy", "rank",
        "--audit", "0",        "--play-off", "0",  "--generator",  generators, NULL};
    struct kcast_result outcome;

    forget(f);
    collect(f, spawn(f, fault, argument), &outcome);
    return outcome;
}

// Kills such a search at the event `first` and at each `step` further ones, and resumes it: it goes
// on as the one that was not killed.
static void resumes_alike(struct fixture *f, const struct run_state *whole, uint64_t first,
                          uint64_t step, const char *killed, const char *generators)
{
    for (uint64_t n = first; n < whole->last_sequence; n += step) {
        char *fault = xasprintf("%s:%llu", n % 2 == 0 ? "before" : "event", (unsigned long long)n);
        struct kcast_result outcome = run_plenty(f, fault, killed, generators);
        struct run_state resumed;

        assert_int_equal(outcome.status, -SIGKILL);
        clear(&outcome);
        resume(f, 0, killed);
        load(&resumed, killed);
        assert_same_decisions(whole, &resumed, fault);
        assert_int_equal(resumed.waiting_count, whole->waiting_count);
        assert_int_equal(resumed.proposals, whole->proposals);
        run_state_release(&resumed);
        (void)unlink(killed);
        free(fault);
    }
}

static void proposals_beyond_a_batch_wait_and_the_best_go_first(void **state)
{
    const struct fake_behaviour facts = {.blind = true, .reads_facts = true};
    struct fixture f = *(struct fixture *)*state;
    fake_start_as(&f.fake, 7, own_url(), &facts);
    char *program = script(&f, "plenty", plenty), *path = run_path(&f, "plenty");
    char *names = xasprintf("exec:%s", program), *killed = run_path(&f, "plenty-killed");
    struct kcast_result outcome = run_plenty(&f, NULL, path, names);
    struct run_state run_state;
    struct run *file = NULL;
    double ranked = 0, in_turn = 0, waiting = 0;
    size_t ranked_count = 0, first = 0;

    if (outcome.status != 0) {
        fail_msg("%s", outcome.err);
    }
    assert_non_null(strstr(outcome.out, "ranked      "));
    assert_non_null(strstr(outcome.out, "waiting     "));
    clear(&outcome);
    load(&run_state, path);
    assert_int_equal(run_open_read(&file, path, NULL), 0);
    assert_int_equal(run_state.candidate_count, 48);
    // Nothing that was written is lost: what is no candidate waits.
    assert_int_equal(run_state.proposals - run_state.known, 48 + run_state.waiting_count);
    assert_true(run_state.waiting_count > 8);
    for (size_t i = 0; i < 48; i++) {
        const struct run_proposed *proposed = &run_state.candidate[i].proposed;
        double worth = worth_of(file, &proposed->source);

        assert_true(proposed->ranked == 0 || proposed->ranked > 4);
        assert_true(proposed->place <= proposed->ranked);
        if (proposed->ranked > 0) {
            ranked += worth;
            ranked_count++;
            first += proposed->place <= 4;
        } else {
            in_turn += worth;
        }
        assert_int_equal(proposed->screened, 0); // it is compiled and decided about like others
        assert_true(proposed->source_facts_count > 0);
    }
    for (size_t i = 0; i < run_state.waiting_count; i++) {
        waiting += worth_of(file, &run_state.waiting[i].answer.source);
    }
    run_close(file);
    assert_true(ranked_count >= 16);
    assert_true(first * 10 >= ranked_count * 7); // but for those that have waited longest
    ranked /= (double)ranked_count;
    in_turn /= (double)(48 - ranked_count);
    waiting /= (double)run_state.waiting_count;
    print_message("worth: in their turn %.2f, ranked %.2f, waiting %.2f\n", in_turn, ranked,
                  waiting);
    assert_true(ranked > in_turn + 0.3 && ranked > waiting + 0.3);
    resumes_alike(&f, &run_state, 30, 41, killed, names);
    run_state_release(&run_state);
    fake_stop(&f.fake);
    free(killed);
    free(names);
    free(path);
    free(program);
}

static void a_language_model_says_which_proposals_go_first(void **state)
{
    const struct fake_behaviour ranks = {.ranks = true};
    struct fixture f = *(struct fixture *)*state;
    fake_start_as(&f.fake, 7, own_url(), &ranks);
    char *program = script(&f, "ordered", plenty), *path = run_path(&f, "ordered");
    char *names = xasprintf("exec:%s", program), *killed = run_path(&f, "ordered-killed");
    struct kcast_result outcome = run_plenty(&f, NULL, path, names);
    struct run_state run_state;
    struct run *file = NULL;
    double chosen = 0, waiting = 0;

    if (outcome.status != 0) {
        fail_msg("%s", outcome.err);
    }
    clear(&outcome);
    load(&run_state, path);
    assert_int_equal(run_open_read(&file, path, NULL), 0);
    assert_int_equal(run_state.candidate_count, 48);
    // It is asked for every batch, from the first one on, when nothing is measured yet.
    assert_int_equal(run_state.orders, 12);
    assert_int_equal(run_state.input_tokens, 12 * 80);
    assert_true(fabs(run_state.model_cost - 12 * 0.5) < 1e-9);
    for (size_t i = 0; i < 48; i++) {
        const struct run_proposed *proposed = &run_state.candidate[i].proposed;

        assert_true(proposed->ranked > 4);
        assert_true(proposed->place <= proposed->ranked); // 0: the one that was not named
        chosen += worth_of(file, &proposed->source) / 48;
    }
    // Nothing is lost: what did not go first waits.
    assert_int_equal(run_state.proposals - run_state.known, 48 + run_state.waiting_count);
    for (size_t i = 0; i < run_state.waiting_count; i++) {
        waiting += worth_of(file, &run_state.waiting[i].answer.source);
    }
    waiting /= (double)run_state.waiting_count;
    run_close(file);
    print_message("worth: chosen %.2f, waiting %.2f\n", chosen, waiting);
    assert_true(chosen > waiting + 0.3);
    resumes_alike(&f, &run_state, 9, 67, killed, names);
    run_state_release(&run_state);
    fake_stop(&f.fake);
    free(killed);
    free(names);
    free(path);
    free(program);
}

static void more_can_be_asked_for_than_a_batch_takes(void **state)
{
    struct fixture *f = *state;
    char *program = script(f, "surplus", good), *path = run_path(f, "surplus");
    char *names = xasprintf("exec:%s", program);
    const char *const argument[] = {
        "search",    f->problem, "--run",        path,  "--seed",   "5",
        "--batch",   "4",        "--candidates", "16",  "--policy", "all",
        "--surplus", "3",        "--generator",  names, NULL};
    struct kcast_result outcome;
    struct run_state run_state;

    forget(f);
    collect(f, spawn(f, NULL, argument), &outcome);
    assert_int_equal(outcome.status, 0);
    clear(&outcome);
    load(&run_state, path);
    assert_int_equal(run_state.started.surplus, 3);
    assert_int_equal(run_state.candidate_count, 16);
    assert_true(run_state.waiting_count >= 8); // two of the three parts of the last batch
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(run_state.candidate[i].proposed.ranked, 0); // nobody forecasts
    }
    run_state_release(&run_state);
    free(names);
    free(path);
    free(program);
}

static void no_process_is_left_behind(void **state)
{
    struct fixture *f = *state;
    char *mark = xasprintf("%s/nothing", f->folder), *path = run_path(f, "left");
    char *text = xasprintf("touch %s; (setsid tail -f %s >/dev/null 2>&1 &)\n%s", mark, mark, good);
    char *program = script(f, "leaves", text), *names = xasprintf("exec:%s", program);
    struct kcast_result outcome = run(f, NULL, path, names, "10m");

    assert_int_equal(outcome.status, 0);
    assert_false(somebody_has(mark));
    clear(&outcome);
    free(program);
    (void)unlink(path);
    char *hang = xasprintf("(setsid tail -f %s &)\nexec tail -f %s", mark, mark);
    program = script(f, "leaves", hang);
    const int numbers[] = {SIGKILL, SIGINT};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char *other = xasprintf("%s.%zu", path, i);
        const char *const argument[] = {"search", f->problem, "--run", other, "-g", names, NULL};
        pid_t pid = spawn(f, NULL, argument);

        UNTIL(somebody_has(mark));
        assert_int_equal(kill(pid, numbers[i]), 0);
        collect(f, pid, &outcome);
        assert_int_equal(outcome.status, i == 0 ? -SIGKILL : EXIT_INTERRUPTED);
        UNTIL(!somebody_has(mark));
        clear(&outcome);
        free(other);
    }
    free(hang);
    free(names);
    free(program);
    free(text);
    free(path);
    free(mark);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_propose_and_are_told_what_became_of_it),
        cmocka_unit_test(candidates_in_python_are_told_apart),
        cmocka_unit_test(a_program_that_fails_is_one_sentence),
        cmocka_unit_test(proposing_the_same_again_ends_the_search_in_order),
        cmocka_unit_test(killed_at_any_event_it_goes_on_without_asking_again),
        cmocka_unit_test(proposals_beyond_a_batch_wait_and_the_best_go_first),
        cmocka_unit_test(a_language_model_says_which_proposals_go_first),
        cmocka_unit_test(more_can_be_asked_for_than_a_batch_takes),
        cmocka_unit_test(no_process_is_left_behind),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
