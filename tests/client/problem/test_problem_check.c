// The check of a problem, with the skeletons of `kcast problem new`: its candidates, how results
// are judged, and the reasons against a problem.
#include "tests/client/problem/problem_code.h"

// A session without connections.
static struct session *lonely_session(void)
{
    static struct session_options options = {.quiet = true};
    struct session *session = NULL;
    struct err err = ERR_INIT;
    if (session_create(&session, &options, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return session;
}

// The options of `kcast problem new`.
struct new_options {
    char *language;
};

static char *new_problem_in(const char *name, const char *language)
{
    struct new_options options = {.language = xstrdup(language)};
    struct session *session = lonely_session();
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s", work_dir, name);
    if (cmd_problem_new.run(session, &options, &path, 1, &err) != EXIT_OK) {
        fail_msg("%s", err.text);
    }
    session_free(session);
    free(options.language);
    return path;
}

static char *new_problem(const char *name)
{
    return new_problem_in(name, "c");
}

static void skeleton_is_a_problem_whose_baseline_meets_its_reference(void **state)
{
    (void)state;
    static const char *const name[] = {"my-op_2", "9lives", "double"};
    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        struct problem_dir dir;
        struct err err = ERR_INIT;
        char *path = new_problem(name[i]);
        if (problem_dir_load(&dir, path, &err) != 0) {
            fail_msg("%s", err.text);
        }
        void *baseline_handle, *reference_handle;
        entry_function *baseline =
            load(dir.problem, false, (const char *)dir.baseline.data, &baseline_handle);
        entry_function *reference =
            load(dir.problem, true, (const char *)dir.reference.data, &reference_handle);
        const struct shape_case *shape = &dir.problem->check[0];
        struct buffers buffers = {.size = {0}};
        fill(dir.problem, shape, 1, &buffers);
        call(baseline, dir.problem, shape, &buffers);
        size_t n = buffers.size[2] / sizeof(float);
        double *expected = xcalloc(n, sizeof *expected), *scale = xcalloc(n, sizeof *scale);
        void *pointer[] = {buffers.data[0], buffers.data[1], expected, scale};
        reference(pointer, shape->i, shape->f);
        for (size_t e = 0; e < n; e++) {
            assert_true(fabs(element(DTYPE_F32, buffers.data[2], e) - expected[e]) <=
                        dir.problem->tensor[2].tolerance * 0x1p-24 * scale[e]);
        }
        free(expected);
        free(scale);
        drop(&buffers);
        dlclose(baseline_handle);
        dlclose(reference_handle);
        problem_dir_release(&dir);
        free(path);
    }
}

static void judge_all(struct problem_check *check)
{
    for (size_t i = 0; i < check->candidate_count; i++) {
        struct result result = {.verdict = check->candidate[i].kind == CHECK_MUTANT
                                               ? VERDICT_WRONG
                                               : VERDICT_INCONCLUSIVE,
                                .max_error = NAN,
                                .error_bound = NAN};
        if (check->candidate[i].source) {
            check_candidate_judge(&check->candidate[i], &result);
        }
    }
}

static struct check_candidate *find(struct problem_check *check, const char *name)
{
    for (size_t i = 0; i < check->candidate_count; i++) {
        if (check->candidate[i].name && strcmp(check->candidate[i].name, name) == 0) {
            return &check->candidate[i];
        }
    }
    fail_msg("no candidate %s", name);
    return NULL;
}

static void assert_manifest(const struct problem_dir *dir, const char *source, const char *name,
                            enum manifest_role role)
{
    struct manifest *manifest = NULL;
    struct err err = ERR_INIT;
    if (manifest_parse(&manifest, source, strlen(source), name, dir->problem, role, &err) != 0) {
        fail_msg("%s", err.text);
    }
    struct manifest_shape shape;
    if (manifest_launch_shape(manifest, 0, &dir->problem->bench[0], dir->problem, &shape, &err) !=
        0) {
        fail_msg("%s: %s", name, err.text);
    }
    manifest_free(manifest);
}

// For a cuda problem the check has the sealed mutants, each with a launch manifest, and one honest
// variant. What exists for C only is not applicable and has a reason.
static void cuda_skeleton_is_a_problem_with_trials(void **state)
{
    (void)state;
    struct problem_dir dir;
    struct err err = ERR_INIT;
    char *path = new_problem_in("on-gpu", "cuda");
    if (problem_dir_load(&dir, path, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(dir.problem->cuda);
    assert_manifest(&dir, (const char *)dir.baseline.data, "baseline.cu", MANIFEST_CANDIDATE);
    assert_manifest(&dir, (const char *)dir.reference.data, "reference.cu", MANIFEST_REFERENCE);
    struct problem_check check;
    if (problem_check_init(&check, &dir, 7, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(check.points, 12);
    size_t sealed = 0;
    for (size_t i = 0; i < check.candidate_count; i++) {
        const struct check_candidate *candidate = &check.candidate[i];
        if (!candidate->source) {
            continue;
        }
        sealed += candidate->kind == CHECK_MUTANT;
        assert_manifest(&dir, candidate->source,
                        candidate->name ? candidate->name : candidate->point_name,
                        MANIFEST_CANDIDATE);
    }
    // Not applicable: previous, first, the two of the last column, and f32-output.
    assert_int_equal(sealed, MUTANT_COUNT - 5);
    assert_int_equal(find(&check, "reordered")->outcome, CHECK_NOT_APPLICABLE);
    assert_non_null(find(&check, "reordered")->reason);
    assert_int_equal(find(&check, "previous")->outcome, CHECK_NOT_APPLICABLE);
    judge_all(&check);
    struct strbuf reasons = STRBUF_INIT;
    assert_true(problem_check_admits(&check, &reasons));
    strbuf_release(&reasons);
    problem_check_release(&check);
    problem_dir_release(&dir);
    free(path);
}

static void new_refuses_what_exists_and_bad_names(void **state)
{
    (void)state;
    struct session *session = lonely_session();
    static const char *const bad[] = {"/tmp", "x/Upper", "x/a b", "x/", "x/<b>"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        char *argument = i == 0 ? xstrdup(bad[i]) : xasprintf("%s/%s", work_dir, bad[i]);
        struct new_options options = {.language = (char[]){"c"}};
        int rc = cmd_problem_new.run(session, &options, &argument, 1, &err);
        if (strcmp(bad[i], "x/") != 0) // a good name, "x"
        {
            assert_int_equal(rc, EXIT_INVALID);
        } else {
            assert_int_equal(rc, EXIT_OK);
        }
        free(argument);
    }
    session_free(session);
}

static void judgement_names_what_got_through(void **state)
{
    (void)state;
    struct problem_dir dir;
    struct err err = ERR_INIT;
    char *path = new_problem("judged");
    assert_int_equal(problem_dir_load(&dir, path, &err), 0);
    struct problem_check check;
    assert_int_equal(problem_check_init(&check, &dir, 7, &err), 0);
    assert_true(check.has_template);
    assert_int_equal(check.points, 12);
    static const struct {
        const char *candidate;
        uint64_t verdict;
        const char *says; // a reason against the problem; NULL: it is admitted
    } row[] = {
        {"zeros", VERDICT_WRONG, NULL},
        {"zeros", VERDICT_QUARANTINED, NULL},
        {"zeros", VERDICT_CRASH, NULL},
        {"zeros", VERDICT_SLOWER,
         "\"zeros\", which writes zeros, was taken for correct: the error scale"},
        {"zeros", VERDICT_COMPILE_ERROR, "\"zeros\" could not be tried (compile-error)"},
        {"zeros", VERDICT_TIMEOUT, "\"zeros\" could not be tried (timeout)"},
        {"baseline", VERDICT_WRONG, "The baseline does not agree with the reference (wrong)"},
        {"reordered", VERDICT_WRONG, "the tolerance is too tight"},
        {"reordered", VERDICT_EQUIVALENT, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct result result = {.verdict = row[i].verdict, .max_error = NAN, .error_bound = NAN};
        judge_all(&check);
        check_candidate_judge(find(&check, row[i].candidate), &result);
        struct strbuf reasons = STRBUF_INIT;
        assert_int_equal(problem_check_admits(&check, &reasons), !row[i].says);
        if (row[i].says && !strstr(strbuf_text(&reasons), row[i].says)) {
            fail_msg("\"%s\" is not in: %s", row[i].says, strbuf_text(&reasons));
        }
        strbuf_release(&reasons);
    }
    problem_check_release(&check);
    problem_dir_release(&dir);
    free(path);
}

// What is wrong with the problem itself, such as a reference that cannot be recorded, is said once.
static void what_keeps_all_from_being_tried_is_one_sentence(void **state)
{
    static char said[] = "reference.py of problem p cannot be recorded: reference.py:3: it waits";
    struct result result = {
        .verdict = VERDICT_COMPILE_ERROR, .reason = said, .max_error = NAN, .error_bound = NAN};
    struct problem_dir dir;
    struct problem_check check;
    struct strbuf reasons = STRBUF_INIT;
    struct err err = ERR_INIT;
    char *path = new_problem("unrecorded");

    (void)state;
    assert_int_equal(problem_dir_load(&dir, path, &err), 0);
    assert_int_equal(problem_check_init(&check, &dir, 7, &err), 0);
    judge_all(&check);
    for (size_t i = 0; i < check.candidate_count; i++) {
        if (check.candidate[i].source) {
            check_candidate_judge(&check.candidate[i], &result);
        }
    }
    assert_false(problem_check_admits(&check, &reasons));
    assert_string_equal(strbuf_text(&reasons),
                        "Nothing could be tried: reference.py of problem p cannot "
                        "be recorded: reference.py:3: it waits.\n");
    strbuf_release(&reasons);
    problem_check_release(&check);
    problem_dir_release(&dir);
    free(path);
}

static void template_needs_one_point_that_works(void **state)
{
    (void)state;
    struct problem_dir dir;
    struct err err = ERR_INIT;
    char *path = new_problem("templated");
    assert_int_equal(problem_dir_load(&dir, path, &err), 0);
    struct problem_check check;
    assert_int_equal(problem_check_init(&check, &dir, 7, &err), 0);
    judge_all(&check);
    struct result wrong = {.verdict = VERDICT_WRONG, .max_error = NAN, .error_bound = NAN};
    size_t points = 0;
    for (size_t i = 0; i < check.candidate_count; i++) {
        if (check.candidate[i].kind == CHECK_TEMPLATE && points++ > 0) {
            check_candidate_judge(&check.candidate[i], &wrong);
        }
    }
    assert_int_equal(points, CHECK_SAMPLE);
    struct strbuf reasons = STRBUF_INIT;
    assert_true(problem_check_admits(&check, &reasons));
    for (size_t i = 0; i < check.candidate_count; i++) {
        if (check.candidate[i].kind == CHECK_TEMPLATE) {
            check_candidate_judge(&check.candidate[i], &wrong);
        }
    }
    assert_false(problem_check_admits(&check, &reasons));
    assert_non_null(strstr(strbuf_text(&reasons), "None of the template's points"));
    strbuf_release(&reasons);
    problem_check_release(&check);
    problem_dir_release(&dir);
    free(path);
}

// Honest variants must be correct and mutants caught, unless they do not apply; points need an
// answer alone.
static void outcomes_are_expected_by_kind(void **state)
{
    static const struct {
        enum check_outcome outcome;
        bool honest, mutant, point;
    } cases[] = {
        {CHECK_WAITING, false, false, false},  {CHECK_NOT_APPLICABLE, true, true, true},
        {CHECK_CORRECT, true, false, true},    {CHECK_CAUGHT, false, true, true},
        {CHECK_UNDECIDED, false, false, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct check_candidate candidate = {.kind = CHECK_HONEST, .outcome = cases[i].outcome};
        assert_int_equal(check_candidate_as_expected(&candidate), cases[i].honest);
        candidate.kind = CHECK_MUTANT;
        assert_int_equal(check_candidate_as_expected(&candidate), cases[i].mutant);
        candidate.kind = CHECK_TEMPLATE;
        assert_int_equal(check_candidate_as_expected(&candidate), cases[i].point);
    }
}

static void every_verdict_is_an_outcome_and_the_last_reason_stays(void **state)
{
    static const struct {
        uint64_t verdict;
        enum check_outcome outcome;
    } cases[] = {
        {VERDICT_WRONG, CHECK_CAUGHT},      {VERDICT_CRASH, CHECK_CAUGHT},
        {VERDICT_REJECTED, CHECK_CAUGHT},   {VERDICT_QUARANTINED, CHECK_CAUGHT},
        {VERDICT_FASTER, CHECK_CORRECT},    {VERDICT_SLOWER, CHECK_CORRECT},
        {VERDICT_TIMEOUT, CHECK_UNDECIDED}, {VERDICT_COMPILE_ERROR, CHECK_UNDECIDED},
        {VERDICT_NONE, CHECK_UNDECIDED},    {UINT64_MAX, CHECK_UNDECIDED},
    };
    (void)state;
    struct check_candidate candidate = {.kind = CHECK_MUTANT};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct estimate speedup = {.log2 = 0.5};
        char reason[] = "so it is";
        const struct result result = {
            .verdict = cases[i].verdict, .reason = reason, .max_error = 3, .speedup = &speedup};
        candidate.log2_speedup = NAN;
        check_candidate_judge(&candidate, &result);
        assert_int_equal(candidate.outcome, cases[i].outcome);
        assert_int_equal(candidate.verdict, cases[i].verdict);
        assert_true(candidate.max_error == 3);
        assert_string_equal(candidate.reason, "so it is");
        assert_ptr_not_equal(candidate.reason, reason);
        assert_int_equal(isnan(candidate.log2_speedup), cases[i].outcome != CHECK_CORRECT);
    }
    const struct result plain = {.verdict = VERDICT_FASTER}; // without reason and speedup
    check_candidate_judge(&candidate, &plain);
    assert_null(candidate.reason);
    assert_int_equal(candidate.outcome, CHECK_CORRECT);
}

static void only_points_are_counted_as_points(void **state)
{
    (void)state;
    struct check_candidate candidate[] = {
        {.kind = CHECK_HONEST, .outcome = CHECK_CORRECT, .name = "baseline"},
        {.kind = CHECK_MUTANT, .outcome = CHECK_CAUGHT, .name = "zeros"},
        {.kind = CHECK_TEMPLATE, .outcome = CHECK_CORRECT},
        {.kind = CHECK_TEMPLATE, .outcome = CHECK_CAUGHT},
        {.kind = CHECK_TEMPLATE, .outcome = CHECK_CAUGHT},
    };
    struct problem_check check = {.candidate = candidate,
                                  .candidate_count = ARRAY_LEN(candidate),
                                  .has_template = true,
                                  .points = 3};
    assert_int_equal(problem_check_points(&check, CHECK_CORRECT), 1);
    assert_int_equal(problem_check_points(&check, CHECK_CAUGHT), 2);
    assert_int_equal(problem_check_points(&check, CHECK_WAITING), 0);
    struct strbuf reasons = STRBUF_INIT;
    assert_true(problem_check_admits(&check, &reasons));
    assert_int_equal(reasons.len, 0);
    check.points = 0;
    check.candidate_count = 2;
    assert_false(problem_check_admits(&check, &reasons));
    assert_string_equal(strbuf_text(&reasons),
                        "The template has no point that meets all its conditions.\n");
    strbuf_reset(&reasons);
    check.has_template = false;
    assert_true(problem_check_admits(&check, &reasons));
    candidate[0].outcome = CHECK_WAITING;
    candidate[1].outcome = CHECK_UNDECIDED;
    candidate[1].verdict = VERDICT_TIMEOUT;
    assert_false(problem_check_admits(&check, &reasons));
    assert_string_equal(strbuf_text(&reasons),
                        "\"baseline\" was not tried to its end.\n"
                        "\"zeros\" could not be tried (timeout): no reason is known.\n");
    strbuf_release(&reasons);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skeleton_is_a_problem_whose_baseline_meets_its_reference),
        cmocka_unit_test(cuda_skeleton_is_a_problem_with_trials),
        cmocka_unit_test(new_refuses_what_exists_and_bad_names),
        cmocka_unit_test(judgement_names_what_got_through),
        cmocka_unit_test(outcomes_are_expected_by_kind),
        cmocka_unit_test(every_verdict_is_an_outcome_and_the_last_reason_stays),
        cmocka_unit_test(only_points_are_counted_as_points),
        cmocka_unit_test(what_keeps_all_from_being_tried_is_one_sentence),
        cmocka_unit_test(template_needs_one_point_that_works),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
