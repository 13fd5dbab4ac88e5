// kcast problem check: says whether a problem is fit for use. client/problem/problem_check.h does
// the work; this file has the words for people.
#include "client/command.h"
#include "client/pool/job_progress.h"
#include "client/problem/problem_check.h"
#include "client/session.h"
#include "client/show.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/stats.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIED "tried" // what the line on stderr counts

struct check_options {
    uint64_t seed;
};

static const struct option_row rows[] = {
    {"seed", 0, OPTION_U64, offsetof(struct check_options, seed), "N", "1", 0, 0, NULL,
     "which points of the template are tried"},
    {.name = NULL},
};

static const char *outcome_word(const struct check_candidate *candidate)
{
    switch (candidate->outcome) {
    case CHECK_WAITING:
        return "no answer";
    case CHECK_NOT_APPLICABLE:
        return "n/a";
    case CHECK_CORRECT:
        return candidate->kind == CHECK_MUTANT ? "GOT THROUGH" : "correct";
    case CHECK_CAUGHT:
    case CHECK_UNDECIDED:
        break;
    }
    return verdict_name(candidate->verdict);
}

// Prints the last column: the reason, or by how much the output was wrong.
static void print_remark(const struct check_candidate *candidate)
{
    if (candidate->outcome == CHECK_NOT_APPLICABLE || candidate->outcome == CHECK_UNDECIDED) {
        printable_printf(stdout, "  %s", candidate->reason ? candidate->reason : "");
    } else if (isfinite(candidate->max_error) && isfinite(candidate->error_bound)) {
        printable_printf(stdout, "  error %.3g of %.3g", candidate->max_error,
                         candidate->error_bound);
    } else if (candidate->outcome == CHECK_CAUGHT && candidate->verdict == VERDICT_WRONG) {
        printable_printf(stdout, "  beyond any bound");
    }
}

static void print_candidates(const struct problem_check *check, enum check_kind kind,
                             const char *heading)
{
    printable_printf(stdout, "%s\n", heading);
    for (size_t i = 0; i < check->candidate_count; i++) {
        const struct check_candidate *candidate = &check->candidate[i];
        if (candidate->kind != kind) {
            continue;
        }
        printable_printf(stdout, "  %-4s %-20s %-13s",
                         check_candidate_as_expected(candidate) ? "ok" : "BAD", candidate->name,
                         outcome_word(candidate));
        print_remark(candidate);
        printable_printf(stdout, "\n");
    }
}

static void print_template(const struct problem_check *check)
{
    if (!check->has_template) {
        printable_printf(stdout, "template: none\n");
        return;
    }
    size_t tried = 0;
    for (size_t i = 0; i < check->candidate_count; i++) {
        tried += check->candidate[i].kind == CHECK_TEMPLATE;
    }
    printable_printf(
        stdout,
        "template: %zu points; of %zu tried %zu correct, %zu wrong, %zu not compiled or untried\n",
        check->points, tried, problem_check_points(check, CHECK_CORRECT),
        problem_check_points(check, CHECK_CAUGHT),
        problem_check_points(check, CHECK_UNDECIDED) + problem_check_points(check, CHECK_WAITING));
    for (size_t i = 0; i < check->candidate_count; i++) {
        const struct check_candidate *candidate = &check->candidate[i];
        if (candidate->kind != CHECK_TEMPLATE) {
            continue;
        }
        printable_printf(stdout, "  %-13s", outcome_word(candidate));
        if (isfinite(candidate->log2_speedup)) {
            printable_printf(stdout, " about %5.2fx", exp2(candidate->log2_speedup));
        } else {
            printable_printf(stdout, " %12s", "");
        }
        printable_printf(stdout, "  %s\n", candidate->point_name);
    }
}

static void print_table(const struct problem_check *check, bool admitted, const char *reasons)
{
    printable_printf(stdout, "%s: %s\n\n", check->dir->problem->name, check->dir->problem->title);
    print_candidates(check, CHECK_HONEST, "honest variants, which must be taken for correct:");
    printable_printf(stdout, "\n");
    print_candidates(check, CHECK_MUTANT, "mutants, which must be caught:");
    printable_printf(stdout, "\n");
    print_template(check);
    printable_printf(stdout, "\n");
    printable_print_lines(stdout, reasons);
    printable_printf(stdout, "%s\n", admitted ? "admitted" : "not admitted");
}

static void print_json(const struct problem_check *check, bool admitted, const char *reasons)
{
    static const char *const kind[] = {"honest", "impostor", "template"};
    static const char *const outcome[] = {"waiting", "not-applicable", "correct", "caught",
                                          "untried"};
    json_t *object = json_object(), *trials = json_array(), *sentences = json_array();
    for (size_t i = 0; i < check->candidate_count; i++) {
        const struct check_candidate *candidate = &check->candidate[i];
        json_t *row = json_object();
        json_object_set_new(row, "kind", show_text(kind[candidate->kind]));
        json_object_set_new(row, "name",
                            show_text(candidate->name ? candidate->name : candidate->point_name));
        json_object_set_new(row, "outcome", show_text(outcome[candidate->outcome]));
        json_object_set_new(row, "verdict", show_text(verdict_name(candidate->verdict)));
        json_object_set_new(row, "ok", json_boolean(check_candidate_as_expected(candidate)));
        json_object_set_new(row, "reason", show_text(candidate->reason));
        json_object_set_new(row, "max_error", show_number(candidate->max_error));
        json_object_set_new(row, "error_bound", show_number(candidate->error_bound));
        json_array_append_new(trials, row);
    }
    for (const char *line = reasons; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        char *sentence = xstrndup(line, len);
        json_array_append_new(sentences, show_text(sentence));
        free(sentence);
        line += len + (line[len] == '\n');
    }
    json_object_set_new(object, "problem", show_text(check->dir->problem->name));
    json_object_set_new(object, "admitted", json_boolean(admitted));
    json_object_set_new(object, "reasons", sentences);
    json_object_set_new(object, "points", json_integer((json_int_t)check->points));
    json_object_set_new(object, "trials", trials);
    show_print(object);
}

static void on_progress(void *owner, size_t done, size_t total)
{
    job_progress_set(owner, TRIED, done, total);
}

// Returns the exit code of the check, or a negative error code when it could not be finished.
static int check_dir(struct session *session, const struct problem_dir *dir, uint64_t seed,
                     struct err *err)
{
    const struct session_options *global = session_options(session);
    struct problem_check check;
    struct device_info device = {0};
    struct strbuf reasons = STRBUF_INIT;
    struct job_progress *job_progress = NULL;
    int rc = problem_check_init(&check, dir, seed, err);
    if (rc != 0) {
        return rc;
    }
    char search[64];
    snprintf(search, sizeof search, "problem-check-%016" PRIx64, stats_entropy());
    struct daemon_pool *daemon_pool = NULL;
    rc = daemon_pool_create(&daemon_pool, session, search, NULL, err);
    if (rc != 0) {
        goto out;
    }
    rc = daemon_pool_choose(daemon_pool, NULL, dir->problem, &device, NULL, err);
    if (rc != 0) {
        goto out;
    }
    job_progress = job_progress_create(session, daemon_pool, TRIED, stderr, &clock_system);
    rc = problem_check_run(&check, daemon_pool, on_progress, job_progress, err);
    if (rc != 0) {
        goto out;
    }
    job_progress_wipe(job_progress);
    bool admitted = problem_check_admits(&check, &reasons);
    if (global->json) {
        print_json(&check, admitted, strbuf_text(&reasons));
    } else {
        print_table(&check, admitted, strbuf_text(&reasons));
    }
    rc = admitted ? EXIT_OK : EXIT_NEGATIVE;
out:
    job_progress_free(job_progress);
    daemon_pool_close(daemon_pool);
    message_clear(&device_info_message, &device);
    strbuf_release(&reasons);
    problem_check_release(&check);
    return rc;
}

static int check_run(struct session *session, const void *options, char **argument,
                     size_t argument_count, struct err *err)
{
    (void)argument_count;
    const struct check_options *given = options;
    struct problem_dir dir;
    int rc = problem_dir_load(&dir, argument[0], err);
    if (rc != 0) {
        return err_exit(rc);
    }
    rc = check_dir(session, &dir, given->seed, err);
    problem_dir_release(&dir);
    return rc < 0 ? err_exit(rc) : rc;
}

const struct command cmd_problem_check = {
    .name = "problem check",
    .arguments = "PROBLEM",
    .help = "Decide whether a problem is fit for use: mutants must be caught, honest variants "
            "must pass",
    .option = rows,
    .options_size = sizeof(struct check_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = check_run,
};
