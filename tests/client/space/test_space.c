// Spaces: what is written is read again, what is not a whole space is refused, and a run becomes a
// space.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/space/space.h"
#include "common/file.h"
#include "tests/client/report/report_run.h"
#include <dirent.h>

#define CANDIDATES 12

static char *work_dir, *space_file;

static struct fact fact_of(const char *name, double value)
{
    return (struct fact){xstrdup(name), value};
}

// A space with a template's points, a candidate with its own source, one that did not compile and a
// wrong one.
static struct space made_space(size_t count)
{
    struct stats_rng rng;
    stats_rng_init(&rng, 5, 1);
    struct space space;
    message_init(&space_head_message, &space.head);
    space.head.format = SPACE_FORMAT;
    space.head.problem = xstrdup("sgemm");
    space.head.device_class = xstrdup("cuda: NVIDIA H200");
    space.head.template_source = bytes_copy("//@ tune MB in (1, 2)\n", 22);
    space.head.baseline_text = bytes_copy("int main;", 9);
    space.head.baseline = made_compiled(VERDICT_NONE, 1, false);
    space.head.origin = xstrdup("a test");
    space.head.candidates = count;
    space.candidate = xcalloc(count + 1, sizeof *space.candidate);
    for (size_t i = 0; i < count; i++) {
        struct space_candidate *c = &space.candidate[i];
        message_init(&space_candidate_message, c);
        c->name = xasprintf("MB=%zu", i);
        c->digest = made_digest(i);
        // Every third candidate is not a point of the template.
        if (i % 3 != 2) {
            c->point = i + 1;
            c->params_count = 1;
            c->params = xcalloc(1, sizeof *c->params);
            c->params[0] = fact_of("MB", (double)i);
        } else {
            c->source = bytes_copy("int f;", 6);
        }
        c->compiled = made_compiled(i == 1 ? VERDICT_COMPILE_ERROR : VERDICT_NONE, i, false);
        if (i != 1) {
            c->result = made_result(0.1 * (double)i, i == 3, &rng, false);
        }
        if (i == 7) {
            c->record = made_result(5, false, &rng, false);
        }
    }
    return space;
}

static bool same_space(const struct space *a, const struct space *b)
{
    bool same = message_equal(&space_head_message, &a->head, &b->head);
    for (size_t i = 0; i < a->head.candidates && same; i++) {
        same = message_equal(&space_candidate_message, &a->candidate[i], &b->candidate[i]);
    }
    return same;
}

static struct strbuf packed_space(const struct space *space)
{
    struct strbuf ret = STRBUF_INIT;
    struct err err = ERR_INIT;
    if (space_pack(space, "x.space", &ret, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return ret;
}

// Parses a damaged space and returns the error's code. The error must name the file and contain
// `says`.
static int parse_code(const void *data, size_t len, const char *says)
{
    struct err err = ERR_INIT;
    struct space space;
    // The copy has just this size, so that reading beyond it is detected.
    struct bytes copy = bytes_copy(data, len);
    int rc = space_parse(&space, copy.data, copy.len, "x.space", &err);
    if (rc == 0) {
        space_release(&space);
    } else if (strstr(err.text, "x.space: ") != err.text || !strstr(err.text, says)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    }
    bytes_clear(&copy);
    return rc;
}

static void refused(const struct space *space, int code, const char *says)
{
    struct err err = ERR_INIT;
    struct strbuf out = STRBUF_INIT;
    assert_int_equal(space_pack(space, "x.space", &out, &err), code);
    assert_non_null(strstr(err.text, says));
    strbuf_release(&out);
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct space space = made_space(CANDIDATES), read;
    assert_int_equal(space_write(&space, space_file, &err), 0);
    if (space_read(&read, space_file, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(same_space(&space, &read));
    assert_true(isnan(space_log2(&read.candidate[1])) && isnan(space_log2(&read.candidate[3])));
    assert_true(space_log2(&read.candidate[7]) == read.candidate[7].record->speedup->log2);
    assert_true(space_best_log2(&read) == space_log2(&read.candidate[7]));
    space_release(&read);
    space_release(&space);
}

static void a_part_is_no_space(void **state)
{
    (void)state;
    struct space space = made_space(CANDIDATES);
    struct strbuf data = packed_space(&space);
    // Every length is tried, so also those at which a frame ends.
    for (size_t len = 0; len < data.len; len++) {
        assert_int_equal(parse_code(data.data, len, ""), ERR_CORRUPT);
    }
    assert_int_equal(parse_code(data.data, data.len, ""), 0);
    strbuf_addc(&data, 'x');
    assert_int_equal(parse_code(data.data, data.len, "follows the last candidate"), ERR_CORRUPT);
    data.data[3]++;
    assert_int_equal(parse_code(data.data, data.len, "no space; `kcast export"), ERR_CORRUPT);
    strbuf_release(&data);
    space_release(&space);
}

static int read_code(const struct bytes *file, size_t len)
{
    struct err err = ERR_INIT;
    assert_int_equal(file_replace(space_file, file->data, len, false, &err), 0);
    struct space space;
    int rc = space_read(&space, space_file, &err);
    if (rc == 0) {
        space_release(&space);
    } else {
        assert_true(strstr(err.text, space_file) == err.text);
    }
    return rc;
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct space space = made_space(CANDIDATES);
    assert_int_equal(space_write(&space, space_file, &err), 0);
    space_release(&space);
    struct bytes file;
    assert_int_equal(file_read(&file, space_file, SPACE_FILE_MAX, &err), 0);
    for (size_t len = 0; len < file.len; len += 7) {
        assert_int_equal(read_code(&file, len), ERR_CORRUPT);
    }
    // Behind the ten bytes of a gzip header every byte counts: the data, its checksum and its
    // length.
    for (size_t at = 10; at < file.len; at += 13) {
        file.data[at] ^= 0x10;
        assert_int_equal(read_code(&file, file.len), ERR_CORRUPT);
        file.data[at] ^= 0x10;
    }
    assert_int_equal(read_code(&file, file.len), 0);
    // With the NUL that file_read adds.
    assert_int_equal(read_code(&file, file.len + 1), ERR_CORRUPT);
    assert_int_equal(file_replace(space_file, "plain text", 10, false, &err), 0);
    assert_int_equal(space_read(&space, space_file, &err), ERR_CORRUPT);
    err_clear(&err);
    assert_int_equal(space_read(&space, "nowhere.space", &err), ERR_NOT_FOUND);
    bytes_clear(&file);
}

// Replaces the head's frame of a packed space by another head.
static struct strbuf with_head(const struct space *space, const struct space_head *head)
{
    struct strbuf data = packed_space(space), frame = STRBUF_INIT, ret = STRBUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(message_pack(&space_head_message, head, &frame, &err), 0);
    size_t old = (unsigned char)data.data[8] + ((size_t)(unsigned char)data.data[9] << 8);
    const char length[] = {(char)frame.len, (char)(frame.len >> 8), 0, 0};
    strbuf_add(&ret, data.data, 8);
    strbuf_add(&ret, length, sizeof length);
    strbuf_add(&ret, frame.data, frame.len);
    strbuf_add(&ret, data.data + 12 + old, data.len - 12 - old);
    strbuf_release(&data);
    strbuf_release(&frame);
    return ret;
}

static void heads_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t format, candidates;
        int code;
        const char *says;
    } table[] = {
        {1, CANDIDATES, 0, ""},
        {2, CANDIDATES, ERR_VERSION, "format 2 is not known"},
        {1, 0, ERR_CORRUPT, "1 to "},
        {1, CANDIDATES - 1, ERR_CORRUPT, "follows the last candidate"},
        {1, CANDIDATES + 1, ERR_CORRUPT, "ends too early"},
        {1, SPACE_CANDIDATES_MAX, ERR_CORRUPT, "ends too early"},
        {1, SPACE_CANDIDATES_MAX + 1, ERR_CORRUPT, "1 to "},
        {1, UINT64_MAX, ERR_CORRUPT, "1 to "},
    };
    struct space space = made_space(CANDIDATES);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct space_head head = space.head;
        head.format = table[i].format;
        head.candidates = table[i].candidates;
        struct strbuf data = with_head(&space, &head);
        assert_int_equal(parse_code(data.data, data.len, table[i].says), table[i].code);
        strbuf_release(&data);
    }
    space_release(&space);
}

static void candidates_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct space space = made_space(CANDIDATES), none = made_space(0);
    struct space_candidate *c = &space.candidate[4];
    refused(&none, ERR_CORRUPT, "1 to ");
    char *name = c->name;
    c->name = space.candidate[9].name;
    refused(&space, ERR_CORRUPT, "two candidates are called \"MB=9\"");
    c->name = (char *)(uintptr_t) "a\x1b[2J";
    refused(&space, ERR_CORRUPT, "the name of a candidate, \"a\\x1b[2J\", has a control character");
    c->name = name;
    c->params[0].name[0] = 'X';
    refused(&space, ERR_CORRUPT, "\"MB=4\" has other parameters than \"MB=0\"");
    c->params[0].name[0] = 'M';
    c->params[0].value = INFINITY;
    refused(&space, ERR_CORRUPT, "\"MB=4\" has other parameters");
    c->params[0].value = 4;
    struct compiled *compiled = c->compiled;
    struct result *result = c->result;
    c->compiled = NULL;
    c->result = NULL;
    refused(&space, ERR_CORRUPT, "\"MB=4\" has no outcome");
    c->compiled = compiled;
    c->result = result;
    // What a file holds is checked as well: here two names of the same length are swapped in its
    // bytes.
    struct strbuf data = packed_space(&space);
    char *at = memmem(data.data, data.len, "MB=4", 4);
    assert_non_null(at);
    at[3] = '9';
    assert_int_equal(parse_code(data.data, data.len, "two candidates are called"), ERR_CORRUPT);
    strbuf_release(&data);
    space_release(&none);
    space_release(&space);
}

static size_t entries(const char *folder)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    size_t count = 0;
    while (readdir(dir)) {
        count++;
    }
    closedir(dir);
    return count;
}

static void writing_is_all_or_nothing(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct space first = made_space(CANDIDATES), second = made_space(CANDIDATES), read;
    assert_int_equal(space_write(&first, space_file, &err), 0);
    size_t before = entries(work_dir);
    char *name = second.candidate[3].name;
    second.candidate[3].name = second.candidate[2].name;
    assert_int_equal(space_write(&second, space_file, &err), ERR_CORRUPT);
    second.candidate[3].name = name;
    assert_int_equal(space_read(&read, space_file, NULL), 0);
    assert_true(same_space(&first, &read));
    space_release(&read);
    free(second.head.origin);
    second.head.origin = xstrdup("later");
    assert_int_equal(space_write(&second, space_file, NULL), 0);
    assert_int_equal(space_read(&read, space_file, NULL), 0);
    assert_string_equal(read.head.origin, "later");
    assert_int_equal(entries(work_dir), before);
    char *nowhere = xasprintf("%s/none/a.space", work_dir);
    err_clear(&err);
    assert_int_not_equal(space_write(&second, nowhere, &err), 0);
    assert_non_null(strstr(err.text, nowhere));
    free(nowhere);
    space_release(&read);
    space_release(&first);
    space_release(&second);
}

static struct run *made_run_file(const char *name, const struct made_search *search)
{
    struct run *run = NULL;
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s", work_dir, name);
    if (run_create(&run, path, &err) != 0) {
        fail_msg("%s", err.text);
    }
    struct made_sink sink = {.run = run};
    // One transaction, because a sync for each event would take seconds.
    assert_int_equal(run_begin(run, &err), 0);
    assert_true(made_run(&sink, search));
    assert_int_equal(run_commit(run, &err), 0);
    free(path);
    return run;
}

static void compare(const struct space_candidate *c, const struct run_state *run_state,
                    const struct run_state_candidate *from, size_t *ret_twins)
{
    const struct run_state_candidate *measured = from;
    struct digest digest = digest_of(c->source.data, c->source.len);
    if (from->object_duplicate_of != 0) {
        measured = &run_state->candidate[from->object_duplicate_of - 1];
        ++*ret_twins;
    }
    assert_true(strncmp(c->name, from->proposed.name, strlen(from->proposed.name)) == 0);
    assert_memory_equal(&digest, &from->proposed.source, sizeof digest);
    assert_memory_equal(&c->digest, &digest, sizeof digest);
    assert_int_equal(c->params_count, from->proposed.params_count);
    assert_true((!!c->result) == (!!measured->result));
    assert_true((!!c->record) == (!!measured->record));
    assert_true(c->compiled && !c->compiled->log);
    if (c->result && c->result->speedup) {
        assert_true(c->result->speedup->log2 == (double)(float)measured->result->speedup->log2);
        assert_true(c->result->seconds->held == (double)(float)measured->result->seconds->held);
        assert_int_equal(c->result->seed, 0);
    }
}

static void a_run_becomes_a_space(void **state)
{
    (void)state;
    const struct made_search search = {.candidates = 400, .seed = 7, .finished = true};
    struct run *run = made_run_file("whole.run", &search);
    struct run_state run_state;
    size_t at = 0, twins = 0, failed = 0, records = 0;
    run_state_init(&run_state);
    struct err err = ERR_INIT;
    assert_int_equal(run_state_read(&run_state, run, &err), 0);
    struct space space;
    if (space_of_run(&space, run, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(space.head.problem, "sgemm");
    assert_string_equal(space.head.device_class, run_state.session.device_class);
    assert_non_null(space.head.baseline);
    assert_int_equal(space.head.baseline_text.len, 0); // this run does not have it
    for (size_t i = 0; i < run_state.candidate_count; i++) {
        const struct run_state_candidate *from = &run_state.candidate[i], *measured = from;
        if (from->object_duplicate_of != 0) {
            measured = &run_state.candidate[from->object_duplicate_of - 1];
        }
        bool compile_failed = from->compiled && from->compiled->verdict != VERDICT_NONE;
        bool twin_failed = measured->compiled && measured->compiled->verdict != VERDICT_NONE;
        if (from->proposed.duplicate_of != 0 ||
            (!measured->result && !compile_failed && !twin_failed)) {
            continue;
        }
        assert_true(at < space.head.candidates);
        failed += compile_failed;
        records += measured->record ? 1 : 0;
        compare(&space.candidate[at++], &run_state, from, &twins);
    }
    assert_int_equal(at, space.head.candidates);
    assert_true(twins > 3 && failed > 3 && records > 1 && at > 300 && at < 400);
    // The candidates have only 100 names. This would be refused if the names had not been made
    // unique.
    assert_int_equal(space_write(&space, space_file, &err), 0);
    struct space read;
    assert_int_equal(space_read(&read, space_file, &err), 0);
    assert_true(same_space(&space, &read));
    space_release(&read);
    space_release(&space);
    run_state_release(&run_state);
    run_close(run);
}

static void a_run_without_measurements_is_none(void **state)
{
    (void)state;
    const struct made_search search = {.candidates = 0, .seed = 7};
    struct run *run = made_run_file("empty.run", &search);
    struct err err = ERR_INIT;
    struct space space;
    assert_int_equal(space_of_run(&space, run, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "measured nothing"));
    run_close(run);
}

static int set_up(void **state)
{
    (void)state;
    int code = file_make_temp_dir(&work_dir, "kcast-test-space", NULL);
    space_file = xasprintf("%s/a.space", work_dir);
    return code;
}

static int tear_down(void **state)
{
    (void)state;
    int code = file_remove_tree(work_dir, NULL);
    free(work_dir);
    free(space_file);
    return code;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(a_part_is_no_space),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(heads_that_do_not_fit_are_refused),
        cmocka_unit_test(candidates_that_do_not_fit_are_refused),
        cmocka_unit_test(writing_is_all_or_nothing),
        cmocka_unit_test(a_run_becomes_a_space),
        cmocka_unit_test(a_run_without_measurements_is_none),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
