// The text that Prometheus reads: its form, its numbers, and the bound of its series.
#include "daemon/jobs/scheduler.h"
#include "daemon/metrics.h"
#include "proto/verdict.h"
#include "tests/daemon/served_workshop.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *written(struct workshop *w)
{
    struct strbuf out = STRBUF_INIT;

    metrics_write(&out, &w->parts);
    char *text = xstrdup(strbuf_text(&out));
    strbuf_release(&out);
    return text;
}

// Whether the text has this line. The number of a sample is the last word.
static bool has_line(const char *text, const char *line)
{
    size_t len = strlen(line);

    for (const char *at = text; (at = strstr(at, line)); at++) {
        if ((at == text || at[-1] == '\n') && at[len] == '\n') {
            return true;
        }
    }
    return false;
}

static void assert_line(struct workshop *w, const char *line)
{
    char *text = written(w);

    if (!has_line(text, line)) {
        fail_msg("no line \"%s\" in\n%s", line, text);
    }
    free(text);
}

// The number of samples of this metric, and their sum.
static size_t samples(const char *text, const char *name, double *ret_sum)
{
    char *start = xasprintf("\n%s", name);
    size_t count = 0;

    *ret_sum = 0;
    for (const char *at = text; (at = strstr(at, start)); at++) {
        char next = at[strlen(start)];

        if (next == '{' || next == ' ') {
            const char *end = strchr(at + 1, '\n');
            const char *number = end;

            while (number[-1] != ' ') {
                number--;
            }
            *ret_sum += strtod(number, NULL);
            count++;
        }
    }
    free(start);
    return count;
}

static bool is_name(const char *text, size_t len)
{
    return len > 7 && strncmp(text, "kcastd_", 7) == 0 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz_") >= len;
}

// The length of the labels that begin here, braces included; 0 when they are malformed.
static size_t labels_len(const char *text)
{
    size_t at = 1;

    for (;;) {
        at += strspn(text + at, "abcdefghijklmnopqrstuvwxyz");
        if (strncmp(text + at, "=\"", 2) != 0) {
            return 0;
        }
        for (at += 2; text[at] != '"'; at++) {
            if (text[at] == '\n' || text[at] == '\0') {
                return 0;
            }
            if (text[at] == '\\' && !strchr("\\\"n", text[++at])) {
                return 0;
            }
        }
        at++;
        if (text[at] == '}') {
            return at + 1;
        }
        if (text[at++] != ',') {
            return 0;
        }
    }
}

static void check_sample(const char *line, const char *metric)
{
    size_t len = strcspn(line, "{ ");

    if (len != strlen(metric) || strncmp(line, metric, len) != 0) {
        fail_msg("a sample of another metric than %s: %s", metric, line);
    }
    if (line[len] == '{') {
        size_t labels = labels_len(line + len);

        assert_true(labels > 0);
        len += labels;
    }
    assert_int_equal(line[len], ' ');
    char *end;
    double value = strtod(line + len + 1, &end);
    assert_int_equal(*end, '\0');
    assert_true(value >= 0);
}

// Every metric is described once, typed, and followed by its own samples.
static void check_format(char *text)
{
    char metric[128] = "", seen[8192] = "\n";
    bool typed = true;
    char *rest = text;

    assert_int_equal(text[strlen(text) - 1], '\n');
    text[strlen(text) - 1] = '\0';
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            size_t len = strcspn(line + 7, " ");

            assert_true(typed && is_name(line + 7, len));
            assert_true(strlen(line + 7 + len) > 10); // a sentence
            (void)snprintf(metric, sizeof(metric), "\n%.*s\n", (int)len, line + 7);
            assert_null(strstr(seen, metric));
            (void)snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s", metric + 1);
            (void)snprintf(metric, sizeof(metric), "%.*s", (int)len, line + 7);
            typed = false;
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            const char *type = strrchr(line, ' ') + 1;
            size_t len = strlen(metric);
            bool total = len > 6 && strcmp(metric + len - 6, "_total") == 0;

            assert_int_equal(strncmp(line + 7, metric, len), 0);
            assert_string_equal(type, total ? "counter" : "gauge");
            typed = true;
        } else {
            assert_true(typed);
            check_sample(line, metric);
        }
    }
}

static void every_metric_is_described_typed_and_well_formed(void **state)
{
    struct workshop *w = served_open(2);

    (void)state;
    counters_search(&w->counters, "t", "quote \" backslash \\ line\nfeed")->device_seconds = 1;
    char *text = written(w);
    check_format(text);
    free(text);
    served_close(w);
}

static void a_search_cannot_forge_a_metric_by_its_name(void **state)
{
    struct workshop *w = served_open(1);

    (void)state;
    counters_search(&w->counters, "t", "x\"} 1\nkcastd_well 0\n#")->device_seconds = 2.5;
    assert_line(w,
                "kcastd_search_device_seconds_total{tenant=\"t\",search=\"x\\\"} 1\\nkcastd_well "
                "0\\n#\"} 2.5");
    assert_line(w, "kcastd_well 1");
    char *text = written(w);
    assert_false(has_line(text, "kcastd_well 0"));
    free(text);
    served_close(w);
}

static void series_of_searches_are_bounded_and_their_sum_is_kept(void **state)
{
    static const unsigned numbers[] = {0, 1, METRICS_SEARCHES_MAX, METRICS_SEARCHES_MAX + 1,
                                       COUNTERS_SEARCHES_MAX + 50};

    (void)state;
    for (size_t n = 0; n < ARRAY_LEN(numbers); n++) {
        struct workshop *w = served_open(1);

        for (unsigned i = 0; i < numbers[n]; i++) {
            char name[16];

            (void)snprintf(name, sizeof(name), "s%u", i);
            counters_search(&w->counters, "t", name)->device_seconds = i + 1;
        }
        char *text = written(w);
        double sum;
        size_t count = samples(text, "kcastd_search_device_seconds_total", &sum);
        unsigned named = numbers[n] < METRICS_SEARCHES_MAX ? numbers[n] : METRICS_SEARCHES_MAX;
        assert_int_equal(count, named + 1); // and those without a name
        assert_int_equal((unsigned)sum, numbers[n] * (numbers[n] + 1) / 2);
        free(text);
        served_close(w);
    }
}

static void jobs_and_devices_are_counted_where_they_are(void **state)
{
    struct workshop *w = served_open(2);
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);

    (void)state;
    workshop_compile_until(w, one, JOB_RUNNING);
    device_drain(&w->devices.device[w->devices.device[0].job == one->id ? 1 : 0], "by hand");
    struct job *two = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    workshop_compile_until(w, two, JOB_READY);
    assert_line(w, "kcastd_jobs{state=\"running\"} 1");
    assert_line(w, "kcastd_jobs{state=\"ready\"} 1");
    assert_line(w, "kcastd_jobs{state=\"done\"} 0");
    assert_line(w, "kcastd_queue_length{class=\"test cpu\"} 1");
    assert_line(w, "kcastd_devices{class=\"test cpu\",state=\"busy\"} 1");
    assert_line(w, "kcastd_devices{class=\"test cpu\",state=\"draining\"} 1");
    assert_line(w, "kcastd_devices{class=\"test cpu\",state=\"ready\"} 0");
    assert_line(w, "kcastd_intake_length 0");
    assert_line(w, "kcastd_compile_slots 4");
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    workshop_until_state(w, one, JOB_DONE);
    assert_line(w, "kcastd_jobs{state=\"done\"} 1");
    assert_line(w, "kcastd_jobs_ended_total{state=\"done\"} 1");
    assert_line(w, "kcastd_verdicts_total{verdict=\"wrong\"} 1");
    assert_line(w, "kcastd_verdicts_total{verdict=\"faster\"} 0");
    served_close(w);
}

static void a_device_is_used_for_a_part_of_the_time(void **state)
{
    struct workshop *w = served_open(2);
    struct device *device = &w->devices.device[1];

    (void)state;
    w->parts.started_ns = clock_now_ns(&w->clock);
    device_hold(device, 1, w->parts.started_ns);
    clock_fake_advance(&w->clock, 90 * NS_PER_S);
    (void)device_release(device, clock_now_ns(&w->clock));
    clock_fake_advance(&w->clock, 30 * NS_PER_S);
    assert_line(w, "kcastd_device_utilisation_ratio{device=\"cpu0\",over=\"minute\"} 0");
    assert_line(w, "kcastd_device_utilisation_ratio{device=\"cpu0\",over=\"start\"} 0");
    assert_line(w, "kcastd_device_utilisation_ratio{device=\"cpu1\",over=\"minute\"} 0.5");
    assert_line(w, "kcastd_device_utilisation_ratio{device=\"cpu1\",over=\"start\"} 0.75");
    served_close(w);
}

static void no_usable_device_is_not_well(void **state)
{
    struct workshop *w = served_open(1);

    (void)state;
    assert_line(w, "kcastd_well 1");
    device_quarantine_by_operator(&w->devices.device[0], "a fan is broken");
    assert_line(w, "kcastd_well 0");
    assert_line(w, "kcastd_devices{class=\"test cpu\",state=\"quarantined\"} 1");
    served_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_metric_is_described_typed_and_well_formed),
        cmocka_unit_test(a_search_cannot_forge_a_metric_by_its_name),
        cmocka_unit_test(series_of_searches_are_bounded_and_their_sum_is_kept),
        cmocka_unit_test(jobs_and_devices_are_counted_where_they_are),
        cmocka_unit_test(a_device_is_used_for_a_part_of_the_time),
        cmocka_unit_test(no_usable_device_is_not_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
