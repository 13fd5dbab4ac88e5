// kcast budget, kcast budget set: show and set weights and budgets of device time, at every daemon
// of --pool. Every daemon counts for itself.
#include "client/cmd/daemon_call.h"
#include "client/cmd/tables/share_table.h"
#include "client/command.h"
#include "client/pool/daemons.h"
#include "client/session.h"
#include "common/mem.h"
#include "common/parse.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET_MS 10000

struct set_options {
    char *per_hour;
    double weight; // 0: leave it as it is
    bool reset;
};

static const struct option_row rows[] = {
    {"per-hour", 0, OPTION_TEXT, offsetof(struct set_options, per_hour), "SECONDS", NULL, 0, 0,
     NULL, "device-seconds in an hour, of which at most one hour's are saved up; none: no limit"},
    {"weight", 'w', OPTION_F64, offsetof(struct set_options, weight), "W", NULL, 0.01, 100, NULL,
     "share of device time in relation to others of the same level, 0.01 to 100; default: as it "
     "is"},
    {"reset", 0, OPTION_FLAG, offsetof(struct set_options, reset), NULL, NULL, 0, 0, NULL,
     "begin to count anew"},
    {0},
};

static int call_one(const struct daemons *daemons, const struct daemon_link *link,
                    const struct budget_request *request, bool json, struct err *err)
{
    struct budget_list list;
    int rc = daemon_call(link, OP_BUDGET, &budget_request_message, request, &budget_list_message,
                         &list, BUDGET_MS, err);
    if (rc == 0) {
        share_table_print_budgets(daemons->several ? link->url : NULL, list.accounts,
                                  list.accounts_count, json);
        message_clear(&budget_list_message, &list);
    }
    return rc;
}

// Sends the request to every daemon, also after a failure. Returns an exit code.
static int call(struct session *session, const struct budget_request *request, struct err *err)
{
    struct daemons daemons = {0};
    int rc = daemons_connect(&daemons, session, err);
    for (size_t i = 0; i < daemons.count; i++) {
        struct err why = ERR_INIT;
        if (call_one(&daemons, &daemons.link[i], request, session_options(session)->json, &why) !=
            0) {
            daemon_call_failed(&rc, &why, err);
        }
    }
    daemons_release(&daemons);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

static int run_budget(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    (void)own;
    (void)argument;
    (void)count;
    struct budget_request request;
    message_init(&budget_request_message, &request);
    return call(session, &request, err);
}

// Parses a number of device-seconds. "none" is no limit, which is infinite.
static int parse_limit(double *ret, const char *text, const char *what, struct err *err)
{
    if (strcmp(text, "none") == 0) {
        *ret = INFINITY;
        return 0;
    }
    return parse_f64(ret, text, 0, 1e12, what, NULL) == 0
               ? 0
               : err_set(err, ERR_USAGE,
                         "%s: \"%.100s\" is no number of device-seconds; give one, or none for no "
                         "limit",
                         what, text);
}

static int run_budget_set(struct session *session, const void *own, char **argument, size_t count,
                          struct err *err)
{
    const struct set_options *options = own;
    const char *slash = strchr(argument[0], '/');
    char *tenant = xstrndup(argument[0], slash ? (size_t)(slash - argument[0]) : SIZE_MAX);
    struct budget_request request;
    message_init(&budget_request_message, &request);
    request.tenant = tenant;
    request.search = slash ? (char *)(uintptr_t)(slash + 1) : NULL;
    request.weight = options->weight > 0 ? options->weight : (double)NAN;
    request.reset = options->reset;
    int rc = 0;
    if (count > 1) {
        rc = parse_limit(&request.budget_seconds, argument[1], "SECONDS", err);
    }
    if (rc == 0 && options->per_hour) {
        rc = parse_limit(&request.hour_seconds, options->per_hour, "--per-hour", err);
    }
    if (count == 1 && !options->per_hour && isnan(request.weight) && !options->reset) {
        rc = err_set(err, ERR_USAGE,
                     "kcast budget set %s: nothing to set; give SECONDS, --per-hour, --weight or "
                     "--reset",
                     argument[0]);
    }
    if (rc == 0 && slash && strchr(slash + 1, '/')) {
        rc = err_set(err, ERR_USAGE, "%s: give TENANT or TENANT/SEARCH", argument[0]);
    }
    int exit_code = rc == 0 ? call(session, &request, err) : err_exit(rc);
    free(tenant);
    return exit_code;
}

const struct command cmd_budget = {
    .name = "budget",
    .help = "Show weights, budgets and what was used",
    .run = run_budget,
};

const struct command cmd_budget_set = {
    .name = "budget set",
    .arguments = "TENANT[/SEARCH] [SECONDS|none]",
    .help =
        "Set how many device-seconds a tenant or a search may use at each daemon, and its weight",
    .option = rows,
    .options_size = sizeof(struct set_options),
    .argument_min = 1,
    .argument_max = 2,
    .run = run_budget_set,
};
