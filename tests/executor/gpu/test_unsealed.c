// Candidates that run unsealed, from source to verdict: which ones do, in the recorder's
// jail with a stand-in for PyTorch and memory that the fake GPU shares, and what becomes of those
// that fail or cheat. Times are those of this machine, so only what they cannot change is looked
// at. Skipped without a compiler.
#include "tests/executor/gpu/gpu_trial_fixture.h"
#include "tests/executor/gpu/record/recorder_fixture.h"
#include <math.h>

#define PATIENCE 600.0 // seconds, which nothing here comes near
#define FEW_LAUNCHES 16

struct both {
    struct recorder_fixture *recorder;
    struct trial *trial;
};

// One interpreter for all tests, as an executor has.
static int both_set_up(void **state)
{
    struct both *both = xcalloc(1, sizeof(*both));
    void *recorder, *trial;

    (void)trial_find_compiler(state);
    *state = both;
    if (recorder_set_up(&recorder) != 0 || trial_set_up(&trial) != 0) {
        return -1;
    }
    both->recorder = recorder;
    both->trial = trial;
    both->recorder->plan.unsealed = true;
    both->trial->recorder = &both->recorder->recorder;
    both->trial->plan.python = xstrdup(both->recorder->python);
    both->trial->plan.host_seconds = PATIENCE;
    both->trial->plan.launch_seconds = PATIENCE;
    both->trial->plan.max_launches = FEW_LAUNCHES;
    trial_must_open(both->trial, "");
    return 0;
}

static int both_tear_down(void **state)
{
    struct both *both = *state;
    void *recorder = both->recorder, *trial = both->trial;

    (void)trial_tear_down(&trial);
    (void)recorder_tear_down(&recorder);
    free(both);
    return 0;
}

static struct bytes made(const struct both *both, const char *source)
{
    recorder_becomes(both->recorder, source, VERDICT_NONE, "");
    return bytes_copy(both->recorder->outcome.object.data, both->recorder->outcome.object.len);
}

static const struct result *measured(const struct both *both, const char *source)
{
    struct bytes object = made(both, source);

    assert_true(both->recorder->outcome.compiled->unsealed);
    const struct result *result = trial_result(both->trial, object);
    assert_true(result->unsealed);
    assert_string_equal(result->trust, "unsealed");
    return result;
}

static void becomes(const struct both *both, const char *source, enum verdict verdict,
                    const char *words, bool retire)
{
    const struct result *result = measured(both, source);
    const char *reason = result->reason ? result->reason : "";

    if (result->verdict != verdict || !strstr(reason, words) ||
        both->trial->outcome.retire != retire) {
        fail_msg("%s%s: %s; expected %s: %s; of\n%s", verdict_name(result->verdict),
                 both->trial->outcome.retire ? ", retired" : "", reason, verdict_name(verdict),
                 words, source);
    }
}

// Reads a value on the host and decides by it.
#define DECIDES SCALE "    kernel = 'fk_scale' if x.tolist()[0] < 1e30 else 'fk_copy'\n"
#define LAUNCHES "    torch.launch(kernel, x, y, x.numel(), a)\n"

static void what_decides_on_the_host_is_measured_and_said_to_be_unsealed(void **state)
{
    const struct both *both = *state;
    const struct result *result = measured(both, DECIDES LAUNCHES);

    if (!verdict_is_ratio(result->verdict)) {
        fail_msg("%s: %s", verdict_name(result->verdict), result->reason ? result->reason : "");
    }
    assert_false(both->trial->outcome.retire);
    assert_true(result->overhead_ns > 0);
    assert_true(result->checks > 2);
    assert_non_null(strstr(both->recorder->outcome.compiled->log, "it is not recorded: "));
    // It tells the interpreter, which is Python, and waits for it; the baseline does not.
    assert_true(result->cases[0].candidate_ns->p50 > result->cases[0].baseline_ns->p50);
    // The interpreter serves the next one, and what is returned is taken, too.
    result = measured(both, DECIDES "    z = torch.empty(x.numel() + 3)\n"
                                    "    torch.launch(kernel, x, z[3:], x.numel(), a)\n"
                                    "    return z[3:]\n");
    assert_true(verdict_is_ratio(result->verdict));
}

static void what_can_be_recorded_is_recorded_though_it_might_run_unsealed(void **state)
{
    const struct both *both = *state;
    const struct result *result = trial_result(both->trial, made(both, SCALE LAUNCH));

    assert_false(both->recorder->outcome.compiled->unsealed);
    assert_false(result->unsealed);
    assert_string_equal(result->trust, "recorded");
}

static void what_is_rejected_for_another_reason_stays_rejected(void **state)
{
    const struct both *both = *state;
    static const char *const source[][2] = {
        {SCALE "    pass\n", "it launches nothing"},
        {SCALE "    s = torch.cuda.Stream()\n    s.wait_stream(torch.cuda.current_stream())\n"
               "    with torch.cuda.stream(s):\n        torch.launch('fk_scale', x, y, 300, a)\n",
         "work on another stream"},
    };

    for (size_t i = 0; i < ARRAY_LEN(source); i++) {
        recorder_becomes(both->recorder, source[i][0], VERDICT_REJECTED, source[i][1]);
        assert_null(strstr(both->recorder->outcome.compiled->reason, "--unsealed"));
    }
}

static void without_the_wish_it_is_rejected_and_told_of_the_option(void **state)
{
    const struct both *both = *state;

    both->recorder->plan.unsealed = false;
    recorder_becomes(both->recorder, DECIDES LAUNCHES, VERDICT_REJECTED,
                     "with --unsealed it is measured with its host code");
    assert_false(both->recorder->outcome.compiled->unsealed);
    both->recorder->plan.unsealed = true;
    both->recorder->plan.role = COMPILE_BASELINE;
    recorder_becomes(both->recorder, DECIDES LAUNCHES, VERDICT_REJECTED, "");
    both->recorder->plan.role = COMPILE_CANDIDATE;
}

// Each run has inputs that it has never had, and outputs that hold nothing.
static void answers_of_earlier_runs_are_wrong(void **state)
{
    const struct both *both = *state;

    becomes(both,
            HEAD "kept = {}\n"
                 "def p(x, y, n, a):\n    x.tolist()\n"
                 "    if n not in kept:\n        kept[n] = torch.empty(n)\n"
                 "        torch.launch('fk_scale', x, kept[n], n, a)\n"
                 "    y.copy_(kept[n])\n",
            VERDICT_WRONG, "elements are outside", false);
    becomes(both,
            HEAD "runs = []\n"
                 "def p(x, y, n, a):\n    runs.append(x.tolist()[0])\n"
                 "    if len(runs) < 12: torch.launch('fk_scale', x, y, n, a)\n",
            VERDICT_WRONG, "elements are outside", false);
}

// The judge has its copy before it stops its clock.
static void what_is_written_later_counts_for_nothing(void **state)
{
    const struct both *both = *state;

    becomes(both,
            HEAD "import threading\nbusy = threading.Lock()\n"
                 "def p(x, y, n, a):\n    data = x.tolist()\n    late = [a * v for v in data]\n"
                 "    def write():\n        signal.pause()\n        y.write(late)\n"
                 "    threading.Thread(target=write, daemon=True).start()\n",
            VERDICT_WRONG, "elements are outside", false);
}

static void inputs_and_what_lies_beside_tensors_are_looked_at(void **state)
{
    const struct both *both = *state;

    becomes(both, DECIDES LAUNCHES "    x.zero_()\n", VERDICT_WRONG, "changed its input x", false);
    becomes(both,
            DECIDES LAUNCHES "    import ctypes\n"
                             "    ctypes.memset(y.data_ptr() + 4 * y.numel(), 1, 8)\n",
            VERDICT_WRONG, "wrote outside its tensors", false);
}

// What a failure says is the candidate's own; the interpreter serves the next one.
static void failures_are_the_candidates(void **state)
{
    const struct both *both = *state;
    static const struct {
        const char *source;
        enum verdict verdict;
        const char *words;
    } row[] = {
        {HEAD "count = []\ndef p(x, y, n, a):\n    count.append(x.tolist()[0])\n"
              "    if len(count) > 9: raise ValueError('no more')\n"
              "    torch.launch('fk_scale', x, y, n, a)\n",
         VERDICT_COMPILE_ERROR, "no more"},
        {HEAD "count = []\ndef p(x, y, n, a):\n    count.append(x.tolist()[0])\n"
              "    if len(count) > 9: os.kill(os.getpid(), signal.SIGKILL)\n"
              "    torch.launch('fk_scale', x, y, n, a)\n",
         VERDICT_CRASH, "its process was ended by SIGKILL"},
        {HEAD "count = []\ndef p(x, y, n, a):\n    count.append(x.tolist()[0])\n"
              "    torch.launch('fk_fault' if len(count) > 9 else 'fk_scale', x, y, n, a)\n",
         VERDICT_CRASH, "CUDA error: 700"},
        // An answer before it is told anything answers nothing.
        {HEAD "count = []\ndef p(x, y, n, a):\n    count.append(x.tolist()[0])\n"
              "    torch.launch('fk_scale', x, y, n, a)\n"
              "    for fd in range(3, 32) if len(count) > 9 else ():\n"
              "        try: os.write(fd, bytes(8))\n        except OSError: pass\n",
         VERDICT_REJECTED, "does not answer as it should"},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        becomes(both, row[i].source, row[i].verdict, row[i].words, false);
    }
    const struct result *result = measured(both, DECIDES LAUNCHES);
    assert_true(verdict_is_ratio(result->verdict));
}

// A failure for values that timed launches never have says which they were.
static void a_failure_for_further_values_names_them(void **state)
{
    static const char values[] = "\"stddev\": 1}";
    const struct both *both = *state;
    struct bytes usual = both->trial->plan.problem;
    const char *all = TRIAL_PROBLEM(TRIAL_CHECK), *at = strstr(all, values) + strlen(values);
    char *problem = xasprintf("%.*s, \"also\": [{\"distribution\": \"uniform\", \"low\": 100,"
                              " \"high\": 200}]%s",
                              (int)(at - all), all, at);

    both->trial->plan.problem = trial_text(problem);
    becomes(both,
            HEAD "def p(x, y, n, a):\n"
                 "    if x.tolist()[0] >= 100: raise ValueError('too large')\n"
                 "    torch.launch('fk_scale', x, y, n, a)\n",
            VERDICT_COMPILE_ERROR, "for n=300 a=2 with x from uniform(low=100, high=200)", false);
    trial_replace(&both->trial->plan.problem, usual);
    free(problem);
}

// It is killed with its process group, and this executor measures nothing afterwards.
static void what_does_not_end_is_killed(void **state)
{
    const struct both *both = *state;

    both->trial->plan.launch_seconds = 0.5;
    becomes(both,
            HEAD "count = []\ndef p(x, y, n, a):\n    count.append(x.tolist()[0])\n"
                 "    if len(count) > 5: signal.pause()\n"
                 "    torch.launch('fk_scale', x, y, n, a)\n",
            VERDICT_TIMEOUT, "did not end within", true);
    assert_true(both->trial->outcome.doubtful); // the GPU may have stood still for so long
    both->trial->plan.launch_seconds = PATIENCE;
    both->trial->plan.host_seconds = 5;
    becomes(both,
            HEAD "count = []\ndef p(x, y, n, a):\n    x.tolist()\n"
                 "    if n == 300: count.append(n)\n    elif count: signal.pause()\n"
                 "    torch.launch('fk_scale', x, y, n, a)\n",
            VERDICT_TIMEOUT, "its host code was not ready for all cases within 5 seconds", true);
    assert_false(both->trial->outcome.doubtful);
    both->trial->plan.host_seconds = PATIENCE;
}

// A baseline with so many launches that an interpreter is faster, some 25 times: enough for a
// verdict whatever else this machine does, but not within a few timed launches. When the candidate
// has ended it is timed again, alone; if this machine had much else to do before, that says so.
static void the_baseline_of_a_faster_one_is_timed_alone(void **state)
{
    const struct both *both = *state;
    struct recorder_fixture *f = both->recorder;

    f->plan.unsealed = false;
    f->plan.role = COMPILE_BASELINE;
    struct bytes slow = made(both, SCALE "    for _ in range(1500):\n    " LAUNCH);
    f->plan.unsealed = true;
    f->plan.role = COMPILE_CANDIDATE;
    struct bytes usual = both->trial->plan.baseline;
    both->trial->plan.baseline = slow;
    both->trial->plan.max_launches = 0; // the usual limit
    const struct result *result = measured(both, DECIDES LAUNCHES);
    both->trial->plan.max_launches = FEW_LAUNCHES;
    bool hindered = result->verdict == VERDICT_QUARANTINED;

    if (!hindered && result->verdict != VERDICT_FASTER) {
        fail_msg("%s: %s", verdict_name(result->verdict), result->reason ? result->reason : "");
    }
    assert_true(!hindered || strstr(result->reason, "when that had ended"));
    assert_false(both->trial->outcome.retire);
    trial_replace(&both->trial->plan.baseline, usual);
}

static void a_plan_that_allows_none_runs_none(void **state)
{
    const struct both *both = *state;

    both->trial->plan.host_seconds = NAN;
    trial_fails(both->trial, made(both, DECIDES LAUNCHES), "does not let a candidate run unsealed");
    both->trial->plan.host_seconds = PATIENCE;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_decides_on_the_host_is_measured_and_said_to_be_unsealed),
        cmocka_unit_test(what_can_be_recorded_is_recorded_though_it_might_run_unsealed),
        cmocka_unit_test(what_is_rejected_for_another_reason_stays_rejected),
        cmocka_unit_test(without_the_wish_it_is_rejected_and_told_of_the_option),
        cmocka_unit_test(answers_of_earlier_runs_are_wrong),
        cmocka_unit_test(what_is_written_later_counts_for_nothing),
        cmocka_unit_test(inputs_and_what_lies_beside_tensors_are_looked_at),
        cmocka_unit_test(failures_are_the_candidates),
        cmocka_unit_test(a_failure_for_further_values_names_them),
        cmocka_unit_test(what_does_not_end_is_killed),
        cmocka_unit_test(the_baseline_of_a_faster_one_is_timed_alone),
        cmocka_unit_test(a_plan_that_allows_none_runs_none),
    };

    return cmocka_run_group_tests(tests, both_set_up, both_tear_down);
}
