#include "replay/summary_markdown.h"

#include "client/run/improvement.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/stats.h"
#include "replay/compare.h"
#include "replay/summary.h"
#include <math.h>
#include <stdlib.h>

#define AHEAD 1.0005 // the least ratio that is not printed as 1.000

// Computes two medians over searches: the best speedup as a share of the space's best, and the
// measurements as a share of the space's candidates.
static void medians(const struct tasks *t, const struct search_outcome *outcome, size_t space,
                    size_t variant, double *ret_best, double *ret_measured)
{
    size_t count = (size_t)(t->seeds * t->searches);
    double *best = xcalloc(count, sizeof(*best)), *measured = xcalloc(count, sizeof(*measured));
    double all = (double)recorded_space_data(t->space[space])->head.candidates;

    for (size_t i = 0; i < count; i++) {
        const struct search_outcome *o = &outcome[tasks_index(t, space, variant, 0, i)];

        best[i] = exp2(o->best_log2 - recorded_space_best_log2(t->space[space]));
        measured[i] = (double)o->measured / all;
    }
    *ret_best = stats_median(best, count);
    *ret_measured = stats_median(measured, count);
    free(measured);
    free(best);
}

static void print_found(const struct tasks *t, const struct search_outcome *outcome, FILE *out)
{
    double *best = xcalloc(t->spaces, sizeof(*best)), *measured = xcalloc(t->spaces, sizeof(*best));

    printable_printf(out, "| variant |");
    for (size_t space = 0; space < t->spaces; space++) {
        printable_printf(out, " %s |", recorded_space_name(t->space[space]));
    }
    printable_printf(out, " median space | worst space | measured |\n");
    printable_printf(out, "| --- |");
    for (size_t space = 0; space < t->spaces + 3; space++) {
        printable_printf(out, " --- |");
    }
    printable_printf(out, "\n");
    for (size_t variant = 0; variant < t->variants; variant++) {
        printable_printf(out, "| `%s` |", t->variant[variant].name);
        for (size_t space = 0; space < t->spaces; space++) {
            medians(t, outcome, space, variant, &best[space], &measured[space]);
            printable_printf(out, " %.3f |", best[space]);
        }
        stats_sort(best, t->spaces);
        printable_printf(out, " %.3f | %.3f | %.1f %% |\n", stats_quantile(best, t->spaces, 0.5),
                         best[0], 100 * stats_median(measured, t->spaces));
    }
    free(measured);
    free(best);
}

static void print_share(double share, FILE *out)
{
    if (isfinite(share)) {
        printable_printf(out, "%.2f", share);
    } else {
        printable_printf(out, "never");
    }
}

static void print_times(const struct tasks *t, const struct search_outcome *outcome, size_t variant,
                        size_t other, FILE *out)
{
    struct compare_time given = compare_time(t, outcome, variant, other, 0, COMPARE_OF_GIVEN);
    struct compare_time near =
        compare_time(t, outcome, variant, other, IMPROVEMENT_MARGIN_LOG2, COMPARE_OF_GIVEN);
    struct compare_time needed = compare_time(t, outcome, variant, other, 0, COMPARE_OF_NEEDED);

    print_share(given.quartile[1], out);
    printable_printf(out, " [");
    print_share(given.quartile[0], out);
    printable_printf(out, ", ");
    print_share(given.quartile[2], out);
    printable_printf(out, "] | ");
    print_share(near.quartile[1], out);
    printable_printf(out, " | %.0f %%, %.0f %% | ", 100 * given.reached, 100 * near.reached);
    print_share(needed.quartile[1], out);
    if (isfinite(given.per_measured)) {
        printable_printf(out, " | %.1f | ", given.per_measured);
    } else {
        printable_printf(out, " | | ");
    }
}

// Prints every space on which the variant is ahead, and on how many it is behind.
static void print_spaces(const struct tasks *t, const struct search_outcome *outcome,
                         size_t variant, size_t other, FILE *out)
{
    size_t behind = 0, clearly = 0, ahead = 0;

    for (size_t space = 0; space < t->spaces; space++) {
        struct compare_ratio r = compare_on_space(t, outcome, variant, other, space);
        const char *mark = r.lo > 1 ? "**" : "";

        behind += r.ratio <= 1 / AHEAD;
        clearly += r.ratio <= 1 / AHEAD && r.hi < 1;
        if (r.ratio >= AHEAD) {
            printable_printf(out, "%s%s%s%s %+.1f %%", ahead++ > 0 ? ", " : "", mark,
                             recorded_space_name(t->space[space]), mark, 100 * (r.ratio - 1));
        }
    }
    printable_printf(out, "%s | %zu, %zu |\n", ahead > 0 ? "" : "none", behind, clearly);
}

static void print_against(const struct tasks *t, const struct search_outcome *outcome, size_t other,
                          FILE *out)
{
    const char *name = t->variant[other].name;

    printable_printf(
        out,
        "\n| against `%s` | final speedup over its | device time to its final result, over its "
        "budget: median [quartiles] | within 0.5 %% of it | searches that had it, within 0.5 %% "
        "| over the time that it needed itself | considered per measurement until then | ahead "
        "on | behind on, clearly |\n",
        name);
    printable_printf(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t variant = 0; variant < t->variants; variant++) {
        struct compare_ratio r = compare_final(t, outcome, variant, other);

        if (variant != other) {
            printable_printf(out, "| `%s` | %.3f [%.3f, %.3f] | ", t->variant[variant].name,
                             r.ratio, r.lo, r.hi);
            print_times(t, outcome, variant, other, out);
            print_spaces(t, outcome, variant, other, out);
        }
    }
}

void summary_markdown(const struct tasks *t, const struct search_outcome *outcome,
                      const struct against *against, FILE *out)
{
    print_found(t, outcome, out);
    summary_print_cost_warnings(t, true, out);
    for (size_t i = 0; i < against->count && t->variants > 1; i++) {
        print_against(t, outcome, against->variant[i], out);
    }
}
