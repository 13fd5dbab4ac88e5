#include "replay/summary.h"

#include "common/mem.h"
#include "common/printable.h"
#include "common/stats.h"
#include "common/strbuf.h"
#include "common/utf8.h"
#include "proto/status_json.h"
#include "replay/compare.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- numbers

// Returns one number of every search of a variant on a space, sorted and malloc'd.
static double *gather(const struct tasks *t, const struct search_outcome *outcome, size_t space,
                      size_t variant, double (*number)(const struct search_outcome *),
                      size_t *ret_count)
{
    double *x = xcalloc((size_t)(t->seeds * t->searches), sizeof(*x));
    size_t count = 0;

    for (uint64_t seed = 0; seed < t->seeds; seed++) {
        for (uint64_t search = 0; search < t->searches; search++) {
            x[count++] = number(&outcome[tasks_index(t, space, variant, seed, search)]);
        }
    }
    stats_sort(x, count);
    *ret_count = count;
    return x;
}

static double median(const struct tasks *t, const struct search_outcome *outcome, size_t space,
                     size_t variant, double (*number)(const struct search_outcome *))
{
    size_t count;
    double *x = gather(t, outcome, space, variant, number, &count);
    double ret = stats_quantile(x, count, 0.5);

    free(x);
    return ret;
}

static double best_log2(const struct search_outcome *o)
{
    return o->best_log2;
}

static double device_seconds(const struct search_outcome *o)
{
    return o->device_seconds;
}

static double considered(const struct search_outcome *o)
{
    return (double)o->considered;
}

static double measured(const struct search_outcome *o)
{
    return (double)o->measured;
}

// --- text

// Returns the share of searches that found at least this fraction of the space's best speedup.
static double share_within(const struct tasks *t, const struct search_outcome *outcome,
                           size_t space, size_t variant, double fraction)
{
    double least = recorded_space_best_log2(t->space[space]) + log2(fraction);
    size_t count, within = 0;
    double *x = gather(t, outcome, space, variant, best_log2, &count);

    for (size_t i = 0; i < count; i++) {
        within += x[i] >= least;
    }
    free(x);
    return (double)within / (double)count;
}

static void print_row(const struct tasks *t, const struct search_outcome *outcome, size_t space,
                      size_t variant, FILE *out)
{
    size_t count;
    double *x = gather(t, outcome, space, variant, best_log2, &count);
    double best = recorded_space_best_log2(t->space[space]);

    printable_printf(out, "%-22s %-24s %6.3f [%.3f, %.3f]  %5.0f %%  %9.2f s  %10.0f %9.0f\n",
                     variant == 0 ? recorded_space_name(t->space[space]) : "",
                     t->variant[variant].name, exp2(stats_quantile(x, count, 0.5) - best),
                     exp2(stats_quantile(x, count, 0.1) - best),
                     exp2(stats_quantile(x, count, 0.9) - best),
                     100 * share_within(t, outcome, space, variant, 0.95),
                     median(t, outcome, space, variant, device_seconds),
                     median(t, outcome, space, variant, considered),
                     median(t, outcome, space, variant, measured));
    free(x);
}

static void print_share(double share, FILE *out)
{
    if (isfinite(share)) {
        printable_printf(out, "  %6.2f", share);
    } else {
        printable_printf(out, "  %6s", "never");
    }
}

// Prints "5 of 12", filled up to so many characters.
static void print_of(uint64_t part, uint64_t all, int width, FILE *out)
{
    char text[48];

    (void)snprintf(text, sizeof(text), "%llu of %llu", (unsigned long long)part,
                   (unsigned long long)all);
    printable_printf(out, "  %-*s", width, text);
}

static void print_variant(const struct tasks *t, const struct search_outcome *outcome,
                          size_t variant, FILE *out)
{
    uint64_t improvers = 0, missed = 0, looked = 0, passed = 0, all_considered = 0,
             all_measured = 0;
    struct compare_ratio final = compare_final(t, outcome, variant, 0);
    struct compare_time needed = compare_time(t, outcome, variant, 0, 0, COMPARE_OF_NEEDED);
    struct compare_time given = compare_time(t, outcome, variant, 0, 0, COMPARE_OF_GIVEN);

    for (size_t space = 0; space < t->spaces; space++) {
        for (uint64_t seed = 0; seed < t->seeds; seed++) {
            for (uint64_t search = 0; search < t->searches; search++) {
                const struct search_outcome *o =
                    &outcome[tasks_index(t, space, variant, seed, search)];

                improvers += o->improvers;
                missed += o->missed;
                looked += o->improvers_looked_at;
                passed += o->passed_over_better;
                all_considered += o->considered;
                all_measured += o->measured;
            }
        }
    }
    printable_printf(out, "%-24s %6.3f [%.3f, %.3f]", t->variant[variant].name, final.ratio,
                     final.lo, final.hi);
    print_share(given.quartile[1], out);
    print_share(needed.quartile[1], out);
    printable_printf(out, "  %5.0f %%  %6.1f", 100 * given.reached,
                     (double)all_considered / fmax((double)all_measured, 1));
    print_of(missed, improvers, 16, out);
    print_of(passed, looked, 0, out);
    fputc('\n', out);
}

void summary_print_cost_warnings(const struct tasks *t, bool markdown, FILE *out)
{
    for (size_t space = 0; space < t->spaces; space++) {
        struct strbuf sentence = STRBUF_INIT;

        space_add_cost_warning(recorded_space_data(t->space[space]),
                               recorded_space_name(t->space[space]), &sentence);
        if (sentence.len > 0) {
            printable_printf(out, markdown ? "\n%s.\n" : "(%s)\n", sentence.data);
        }
        strbuf_release(&sentence);
    }
}

void summary_print(const struct tasks *t, const struct search_outcome *outcome, FILE *out)
{
    printable_printf(out, "%-22s %-24s %-23s  %-7s  %-11s  %-10s %s\n", "space", "variant",
                     "best / best of space", "in 5 %", "device time", "considered", "measured");
    for (size_t space = 0; space < t->spaces; space++) {
        for (size_t variant = 0; variant < t->variants; variant++) {
            print_row(t, outcome, space, variant, out);
        }
    }
    printable_printf(
        out, "(medians of %llu searches; the best also with its 10 %% and 90 %% quantiles)\n",
        (unsigned long long)(t->seeds * t->searches));
    summary_print_cost_warnings(t, false, out);
    printable_printf(out, "\n");
    printable_printf(out, "%-24s %-21s  %6s  %6s  %-7s  %-6s  %s  %s\n", "all spaces",
                     "final / control's", "time", "needed", "reached", "c/m", "improvers missed",
                     "passed over");
    for (size_t variant = 0; variant < t->variants; variant++) {
        print_variant(t, outcome, variant, out);
    }
    printable_printf(
        out,
        "final / control's: geometric mean over spaces and paired seeds, 95 %% interval of a "
        "bootstrap over both; control: %s\n",
        t->variant[0].name);
    printable_print_lines(
        out,
        "time: device-seconds until the control's final result over those that the control was "
        "given, median; needed: over those that it needed itself; reached: share of searches "
        "that had it\n"
        "c/m: candidates considered per measured one\n"
        "improvers missed: that were considered and not measured, of those that beat the incumbent "
        "of their decision; passed over: never measured although they beat the last incumbent, of "
        "those that beat the incumbent when a screening or a decision first looked at them\n");
}

// --- JSON

// Prints "key":"text". Names come from files and may hold any byte; what is no
// UTF-8 becomes a question mark.
static void print_text(const char *key, const char *text, FILE *out)
{
    struct strbuf json = STRBUF_INIT, shown = STRBUF_INIT;

    strbuf_addf(&json, "\"%s\":\"", key);
    for (size_t left = strlen(text); left > 0;) {
        unsigned char c = (unsigned char)*text;
        size_t length = utf8_length((const unsigned char *)text, left),
               step = length > 0 ? length : 1;

        if (c == '"' || c == '\\') {
            strbuf_addf(&json, "\\%c", c);
        } else if (c < ' ') {
            strbuf_addf(&json, "\\u%04x", c);
        } else if (length == 0) {
            strbuf_addc(&json, '?');
        } else {
            strbuf_add(&json, text, length);
        }
        text += step;
        left -= step;
    }
    strbuf_addc(&json, '"');
    printable_add_json(&shown, strbuf_text(&json), json.len);
    (void)fwrite(strbuf_text(&shown), 1, shown.len, out);
    strbuf_release(&json);
    strbuf_release(&shown);
}

// One more member; null when it is not finite.
static void print_number(const char *name, double value, FILE *out)
{
    if (isfinite(value)) {
        printable_printf(out, ",\"%s\":%.9g", name, value);
    } else {
        printable_printf(out, ",\"%s\":null", name);
    }
}

// The same of a share; null when it is one of nothing.
static void print_share_of(const char *name, uint64_t part, uint64_t all, FILE *out)
{
    print_number(name, all > 0 ? (double)part / (double)all : NAN, out);
}

// Of a search without audits nothing is estimated, which is null.
static void print_audits(const struct search_audits *audits, FILE *out)
{
    printable_printf(out,
                     ",\"audit_population\":%llu,\"audit_measured\":%llu,\"audit_found\":%llu,"
                     "\"audit_among\":%llu,\"audit_improvers\":%llu",
                     (unsigned long long)audits->population, (unsigned long long)audits->audited,
                     (unsigned long long)audits->found, (unsigned long long)audits->among,
                     (unsigned long long)audits->improvers);
    print_number("audit_share", audits->audited > 0 ? audits->share : NAN, out);
    print_number("audit_upper", audits->audited > 0 ? audits->upper : NAN, out);
}

static void print_object(const struct tasks *t, const struct search_outcome *o, size_t space,
                         size_t variant, uint64_t seed, uint64_t search, FILE *out)
{
    double best = recorded_space_best_log2(t->space[space]);

    printable_printf(out, "{\"schema\":%d,", JSON_SCHEMA);
    print_text("space", recorded_space_name(t->space[space]), out);
    fputc(',', out);
    print_text("policy", t->variant[variant].policy, out);
    fputc(',', out);
    print_text("strategy", t->variant[variant].strategy, out);
    fputc(',', out);
    print_text("forecaster", sim_forecaster_name(t->variant[variant].forecaster), out);
    printable_printf(out,
                     ",\"seed\":%llu,\"search\":%llu,"
                     "\"best_log2\":%.9g,\"space_best_log2\":%.9g,\"fraction_of_best\":%.9g,"
                     "\"considered\":%llu,\"measured\":%llu,\"audited\":%llu,\"trusted\":%llu,"
                     "\"records\":%llu,\"improvers\":%llu,\"missed\":%llu,\"device_seconds\":%.9g,"
                     "\"compile_seconds\":%.9g,\"given_seconds\":%.9g,\"simulated_seconds\":%.9g,"
                     "\"incumbents\":[",
                     (unsigned long long)(t->first_seed + seed), (unsigned long long)search,
                     o->best_log2, best, exp2(o->best_log2 - best),
                     (unsigned long long)o->considered, (unsigned long long)o->measured,
                     (unsigned long long)o->audited, (unsigned long long)o->trusted,
                     (unsigned long long)o->records, (unsigned long long)o->improvers,
                     (unsigned long long)o->missed, o->device_seconds, o->compile_seconds,
                     o->given_seconds, o->seconds);
    for (size_t i = 0; i < o->steps; i++) {
        printable_printf(out, "%s[%.9g,%.9g]", i > 0 ? "," : "", o->step[i].device_seconds,
                         o->step[i].log2);
    }
    printable_printf(out, "],\"left\":%llu,\"left_better\":%llu,\"promised\":%.9g,\"kept\":%g",
                     (unsigned long long)o->left, (unsigned long long)o->left_better, o->promised,
                     o->kept);
    printable_printf(out,
                     ",\"looked_at\":%llu,\"improvers_looked_at\":%llu,\"passed_over\":%llu,"
                     "\"passed_over_better\":%llu",
                     (unsigned long long)o->looked_at, (unsigned long long)o->improvers_looked_at,
                     (unsigned long long)o->passed_over, (unsigned long long)o->passed_over_better);
    print_share_of("passed_over_share", o->passed_over, o->improvers_looked_at, out);
    print_share_of("passed_over_better_share", o->passed_over_better, o->improvers_looked_at, out);
    // What was left and never looked at would have improved on any incumbent, too.
    print_share_of("left_better_share", o->left_better,
                   o->improvers_looked_at + o->left_better - o->passed_over_better, out);
    print_audits(&o->audits, out);
    print_number("left_log2", o->left_log2, out);
    print_number("beyond_log2", o->beyond_log2, out);
    print_number("stated_log2", o->stated_log2, out);
    printable_printf(out, ",\"survey\":[");
    for (size_t i = 0; i < GUARANTEE_LEVELS && !isnan(o->survey[0]); i++) {
        printable_printf(out, "%s%.6g", i > 0 ? "," : "", o->survey[i]);
    }
    printable_printf(out, "]");
    uint64_t launch_costs = recorded_space_data(t->space[space])->head.launch_costs;
    if (launch_costs > 0) {
        printable_printf(out, ",\"launch_costs\":%llu", (unsigned long long)launch_costs);
    }
    printable_printf(out, "}\n");
}

void summary_json(const struct tasks *t, const struct search_outcome *outcome, FILE *out)
{
    for (size_t space = 0; space < t->spaces; space++) {
        for (size_t variant = 0; variant < t->variants; variant++) {
            for (uint64_t seed = 0; seed < t->seeds; seed++) {
                for (uint64_t search = 0; search < t->searches; search++) {
                    print_object(t, &outcome[tasks_index(t, space, variant, seed, search)], space,
                                 variant, seed, search, out);
                }
            }
        }
    }
}
