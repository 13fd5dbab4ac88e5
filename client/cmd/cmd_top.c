// kcast top: shows a daemon as it works: devices and who holds them, the queue, searches and their
// shares. On a terminal it is a page that is drawn again every second, of one daemon of --pool at a
// time. Elsewhere it is one page of text for each daemon.
#include "client/command.h"
#include "client/pool/daemons.h"
#include "client/session.h"
#include "client/show.h"
#include "client/top/top.h"
#include "common/clock.h"
#include "common/printable.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALL_MS 5000
#define WINDOW 10 // replies over which rates and shares are computed

struct top_options {
    uint64_t interval_ns;
};

static const struct option_row rows[] = {
    {"interval", 'n', OPTION_DURATION, offsetof(struct top_options, interval_ns), "TIME", "1s", 1e8,
     3600e9, NULL, "from one look to the next"},
    {0},
};

// The last replies of one daemon, oldest first.
struct history {
    const struct daemon_link *link;
    bool several;                 // --pool names several daemons
    struct status status[WINDOW]; // owned
    uint64_t at_ns[WINDOW];       // when each reply came
    size_t count;                 // of replies
};

// Asks the daemon for its status and adds the reply. The oldest reply goes when there is no room.
static int look(struct history *history, struct err *err)
{
    struct status_request request = {0};
    struct status status;
    int rc = remote_call_sync(history->link->remote, OP_STATUS, &status_request_message, &request,
                              &status_message, &status, CALL_MS, err);
    if (rc != 0) {
        return rc;
    }
    if (history->count == WINDOW) {
        message_clear(&status_message, &history->status[0]);
        for (size_t i = 1; i < WINDOW; i++) {
            history->status[i - 1] = history->status[i];
            history->at_ns[i - 1] = history->at_ns[i];
        }
        history->count--;
    }
    history->status[history->count] = status;
    history->at_ns[history->count++] = clock_now_ns(&clock_system);
    return 0;
}

// Drops the replies of before the daemon's last start, because its counters began anew then.
static void forget_predecessor(struct history *history)
{
    size_t last = history->count - 1;
    if (last > 0 && history->status[last].uptime_seconds < history->status[0].uptime_seconds) {
        for (size_t i = 0; i < last; i++) {
            message_clear(&status_message, &history->status[i]);
        }
        history->status[0] = history->status[last];
        history->at_ns[0] = history->at_ns[last];
        history->count = 1;
    }
}

static struct top_input input_of(const struct history *history)
{
    size_t last = history->count - 1;
    return (struct top_input){
        .url = history->link->url,
        .several = history->several,
        .now = &history->status[last],
        .before = last > 0 ? &history->status[0] : NULL,
        .seconds = clock_seconds(history->at_ns[last] - history->at_ns[0]),
        .width = TOP_WIDTH_MAX,
        .height = SIZE_MAX,
    };
}

static void print_page(const struct top_input *input)
{
    struct top_page *page = xcalloc(1, sizeof(*page));
    top_compose(page, input);
    for (size_t i = 0; i < page->count; i++) {
        printable_printf(stdout, "%s\n", page->line[i].text);
    }
    free(page);
}

static void print_json(const char *url, const struct status *status)
{
    json_t *searches = json_array(), *devices = json_array();
    for (size_t i = 0; i < status->searches_count; i++) {
        const struct search_load *load = &status->searches[i];
        json_array_append_new(
            searches,
            json_pack("{s:o, s:s, s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "tenant",
                      show_text(load->tenant), "search", load->name, "running",
                      (json_int_t)load->running, "unfinished", (json_int_t)load->unfinished,
                      "device_seconds", show_number(load->device_seconds), "compile_seconds",
                      show_number(load->compile_seconds), "measured", (json_int_t)load->measured,
                      "measuring_seconds", show_number(load->measuring_seconds), "waiting_seconds",
                      show_number(load->waiting_seconds), "compiling_seconds",
                      show_number(load->compiling_seconds), "queued_seconds",
                      show_number(load->queued_seconds), "away_seconds",
                      show_number(load->away_seconds)));
    }
    for (size_t i = 0; i < status->devices_count; i++) {
        const struct device_info *device = &status->devices[i];
        json_array_append_new(
            devices, json_pack("{s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o}", "name", device->name,
                               "state", device->state, "reason", show_text(device->reason), "job",
                               (json_int_t)device->job, "search", show_text(device->search),
                               "held_seconds", show_number(device->held_seconds), "utilisation",
                               show_number(device->utilisation), "utilisation_minute",
                               show_number(device->utilisation_minute)));
    }
    show_print(json_pack("{s:s, s:o, s:o, s:o, s:o}", "pool", url, "illness",
                         show_text(status->illness), "devices", devices, "searches", searches,
                         "uptime_seconds", show_number(status->uptime_seconds)));
}

// Chooses the next daemon after `from` that answers. Fails with the last daemon's reason when none
// does.
static int choose_next(size_t *ret, struct history *history, size_t count, size_t from,
                       struct err *err)
{
    struct err why = ERR_INIT;
    for (size_t i = 1; i <= count; i++) {
        size_t next = (from + i) % count;
        err_clear(&why);
        if (!history[next].link->remote) {
            why = history[next].link->why;
        } else if (look(&history[next], &why) == 0) {
            forget_predecessor(&history[next]);
            *ret = next;
            return 0;
        }
    }
    return err_set(err, why.code, "%s", why.text);
}

// Draws the page again and again until a key or a signal ends it.
static int watch(struct session *session, struct history *history, size_t count,
                 uint64_t interval_ns, struct err *err)
{
    struct top_page *page = xcalloc(1, sizeof(*page));
    enum top_sort sort = TOP_BY_SHARE;
    uint64_t due_ns = clock_now_ns(&clock_system) + interval_ns;
    size_t shown = 0;
    int key = 0, rc = choose_next(&shown, history, count, count - 1, err);
    while (rc == 0 && key != 'q' && key != 'Q' && !session_interrupted(session)) {
        struct top_input input = input_of(&history[shown]);
        uint64_t now_ns = clock_now_ns(&clock_system);
        input.sort = sort;
        top_screen_size(&input.width, &input.height);
        top_compose(page, &input);
        top_screen_draw(page);
        key = top_screen_key(now_ns < due_ns ? (int)((due_ns - now_ns) / NS_PER_MS) + 1 : 0);
        sort = key == 's' ? TOP_BY_SHARE : key == 't' ? TOP_BY_SECONDS : sort;
        uv_run(session_loop(session), UV_RUN_NOWAIT); // notes signals
        if (key == 'd') {
            rc = choose_next(&shown, history, count, shown, err);
        } else if (clock_now_ns(&clock_system) >= due_ns) {
            rc = look(&history[shown], err);
            due_ns = clock_now_ns(&clock_system) + interval_ns;
            if (rc == 0) {
                forget_predecessor(&history[shown]);
            }
        }
    }
    free(page);
    return rc;
}

// Prints every daemon once. One that does not answer has a line that says so, unless it is the only
// one. Fails when none answers.
static int print_all(struct history *history, size_t count, bool json, struct err *err)
{
    struct err why = ERR_INIT;
    size_t answered = 0;
    for (size_t i = 0; i < count; i++) {
        const struct daemon_link *link = history[i].link;
        err_clear(&why);
        if (!link->remote) {
            why = link->why;
        } else if (look(&history[i], &why) == 0) {
            struct top_input input = input_of(&history[i]);
            json ? print_json(link->url, &history[i].status[0]) : print_page(&input);
            answered++;
            continue;
        }
        if (history[i].several && json) {
            show_print(json_pack("{s:s, s:s}", "pool", link->url, "error", why.text));
        } else if (history[i].several) {
            printable_printf(stdout, "daemon %s, not there: %s\n", link->url, why.text);
        }
    }
    return answered > 0 ? 0 : err_set(err, why.code, "%s", why.text);
}

static int run_top(struct session *session, const void *own, char **argument, size_t count,
                   struct err *err)
{
    (void)argument;
    (void)count;
    const struct top_options *options = own;
    struct daemons daemons;
    int rc = daemons_connect(&daemons, session, err);
    if (rc != 0) {
        return err_exit(rc);
    }
    struct history *history = xcalloc(daemons.count + 1, sizeof(*history));
    for (size_t i = 0; i < daemons.count; i++) {
        history[i].link = &daemons.link[i];
        history[i].several = daemons.several;
    }
    struct top_screen *screen;
    if (session_options(session)->json || !isatty(STDOUT_FILENO)) {
        rc = print_all(history, daemons.count, session_options(session)->json, err);
    } else if ((rc = top_screen_open(&screen, err)) == 0) {
        rc = watch(session, history, daemons.count, options->interval_ns, err);
        top_screen_close(screen);
    }
    for (size_t i = 0; i < daemons.count; i++) {
        for (size_t k = 0; k < history[i].count; k++) {
            message_clear(&status_message, &history[i].status[k]);
        }
    }
    free(history);
    daemons_release(&daemons);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_top = {
    .name = "top",
    .help = "Watch devices, queue and searches; one page as text when the output is no terminal",
    .option = rows,
    .options_size = sizeof(struct top_options),
    .run = run_top,
};
