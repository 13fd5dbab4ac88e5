#include "client/cmd/tables/share_table.h"
#include "client/show.h"
#include "common/mem.h"
#include "common/printable.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static char *path_of(const struct share_info *share)
{
    return share->search ? xasprintf("%s/%s", share->tenant, share->search)
                         : xstrdup(share->tenant);
}

// Prints the device-seconds used, of how many when there is a budget, and what is left of the
// hour's budget.
static void print_used(const struct share_info *share)
{
    printable_printf(stdout, "%.1f", share->used_seconds);
    if (!isnan(share->budget_seconds)) {
        printable_printf(stdout, " of %.6g", share->budget_seconds);
    }
    printable_printf(stdout, " device-seconds");
    if (!isnan(share->hour_seconds)) {
        printable_printf(stdout, ", %.1f left of %.6g an hour", share->left_seconds,
                         share->hour_seconds);
    }
}

void share_table_print(const struct share_info *share, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *path = path_of(&share[i]);
        printable_printf(
            stdout,
            "  %-40s %s, weight %g (tenant %g): to have %.0f %%, had %.0f %% of late, holds %llu, "
            "%llu waiting, ",
            path, share[i].queue_class ? share[i].queue_class : "unknown", share[i].weight,
            share[i].tenant_weight, 100 * share[i].share, 100 * share[i].recent,
            (unsigned long long)share[i].held, (unsigned long long)share[i].waiting);
        print_used(&share[i]);
        printable_printf(stdout, "\n");
        free(path);
    }
}

static json_t *account_object(const struct share_info *a)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "tenant", a->tenant, "search",
                     show_text(a->search), "weight", show_number(a->weight), "tenant_weight",
                     show_number(a->tenant_weight), "used_seconds", show_number(a->used_seconds),
                     "budget_seconds", show_number(a->budget_seconds), "per_hour_seconds",
                     show_number(a->hour_seconds), "per_hour_left", show_number(a->left_seconds));
}

void share_table_print_budgets(const char *url, const struct share_info *account, size_t count,
                               bool json)
{
    if (url && !json) {
        printable_printf(stdout, "daemon %s\n", url);
    }
    if (count == 0 && !json) {
        printable_printf(stdout, "no tenant has used anything yet\n");
    }
    for (size_t i = 0; i < count; i++) {
        char *path = path_of(&account[i]);
        if (json) {
            json_t *row = account_object(&account[i]);
            if (url) {
                json_object_set_new(row, "pool", json_string(url));
            }
            show_print(row);
        } else {
            printable_printf(stdout, "%-40s weight %g, used ", path, account[i].weight);
            print_used(&account[i]);
            printable_printf(stdout, "\n");
        }
        free(path);
    }
}
