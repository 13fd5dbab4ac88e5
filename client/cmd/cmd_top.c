// kcast top: shows a daemon as it works: devices and who holds them, the queue, searches and their
// shares. On a terminal it is a page that is drawn again every second, of one daemon of --pool at a
// time. Elsewhere it is one page of text for each daemon.
#include "client/command.h"
#include "client/pool/daemons.h"
#include "client/session.h"
#include "client/show.h"
#include "client/top/top.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/printable.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL_MS 5000
#define RETRY_MS 1500 // to a daemon that has answered before, so that keys are still read
#define KEY_UP 0403   // of curses, which client/top/top_screen.c alone includes
#define KEY_DOWN 0402
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
    int rc =
        remote_call_sync(history->link->remote, OP_STATUS, &status_request_message, &request,
                         &status_message, &status, history->count == 0 ? CALL_MS : RETRY_MS, err);
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

// The best speedup as {"speedup", "ci95"}; null when there is none.
static json_t *show_best(const struct estimate *best)
{
    return !best ? json_null()
                 : json_pack("{s:o, s:o}", "speedup", show_ratio(best->log2), "ci95",
                             show_interval(best));
}

static void print_json(const char *url, const struct status *status)
{
    json_t *searches = json_array(), *devices = json_array();
    for (size_t i = 0; i < status->searches_count; i++) {
        const struct search_load *load = &status->searches[i];
        json_array_append_new(
            searches,
            json_pack(
                "{s:o, s:s, s:o, s:o, s:I, s:o, s:I, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o}",
                "tenant", show_text(load->tenant), "search", load->name, "problem",
                show_text(load->problem), "best", show_best(load->best), "planned",
                (json_int_t)load->planned, "planned_seconds", show_number(load->planned_seconds),
                "running", (json_int_t)load->running, "unfinished", (json_int_t)load->unfinished,
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

// What a person watches, and how.
struct viewer {
    struct session *session;
    struct history *history;
    size_t count; // of daemons
    size_t shown; // the daemon that is shown
    enum top_sort sort;
    enum top_view view;
    bool finished; // searches that have ended are shown
    size_t selected;
    char *victim;  // name of the search that is to be cancelled if the next key says so; or NULL
    char *message; // for the last line; NULL: none
};

static struct top_input look_of(const struct viewer *viewer)
{
    struct top_input input = input_of(&viewer->history[viewer->shown]);
    input.sort = viewer->sort;
    input.view = viewer->view;
    input.finished = viewer->finished;
    input.selected = viewer->selected;
    input.message = viewer->message;
    top_screen_size(&input.width, &input.height);
    return input;
}

static void set_message(struct viewer *viewer, char *text_taken)
{
    free(viewer->message);
    viewer->message = text_taken;
}

// Asks for the next look. A daemon that does not answer, because it is started again perhaps, is
// asked until it does; the page stays as it was and says so.
static void look_again(struct viewer *viewer)
{
    struct history *history = &viewer->history[viewer->shown];
    struct err why = ERR_INIT;
    int rc = look(history, &why);
    if (rc == 0) {
        if (viewer->message && strncmp(viewer->message, "no answer", 9) == 0) {
            set_message(viewer, NULL);
        }
        forget_predecessor(history);
        return;
    }
    set_message(viewer, xasprintf("no answer (trying again): %.200s", why.text));
}

static void cancel_search(struct viewer *viewer)
{
    struct job_ids ids = {.search = viewer->victim};
    struct job_infos infos;
    struct err why = ERR_INIT;
    int rc = remote_call_sync(viewer->history[viewer->shown].link->remote, OP_CANCEL,
                              &job_ids_message, &ids, &job_infos_message, &infos, CALL_MS, &why);
    if (rc == 0) {
        set_message(viewer, xasprintf("cancelled %zu job%s of %.100s", infos.jobs_count,
                                      infos.jobs_count == 1 ? "" : "s", viewer->victim));
        message_clear(&job_infos_message, &infos);
    } else {
        set_message(viewer, xasprintf("not cancelled: %.200s", why.text));
    }
}

static void select_next(struct viewer *viewer, int step)
{
    struct top_input input = look_of(viewer);
    size_t count;
    (void)top_selected(&input, &count);
    size_t at = viewer->selected < count ? viewer->selected : count > 0 ? count - 1 : 0;
    viewer->selected = step > 0 ? (at + 1 < count ? at + 1 : at) : at - (at > 0);
}

static void ask_to_cancel(struct viewer *viewer)
{
    struct top_input input = look_of(viewer);
    size_t count;
    const struct search_load *load = top_selected(&input, &count);
    if (load && load->unfinished > 0) {
        viewer->victim = xstrdup(load->name);
        set_message(viewer, xasprintf("cancel the %llu job%s of %.100s? y cancels, any other key "
                                      "does not",
                                      (unsigned long long)load->unfinished,
                                      load->unfinished == 1 ? "" : "s", load->name));
    } else {
        set_message(viewer, xstrdup("no search with jobs is selected"));
    }
}

static void press(struct viewer *viewer, int key)
{
    if (viewer->victim) { // the answer to a question
        set_message(viewer, NULL);
        if (key == 'y' || key == 'Y') {
            cancel_search(viewer);
        }
        free(viewer->victim);
        viewer->victim = NULL;
        return;
    }
    set_message(viewer, NULL);
    if (viewer->view != TOP_OVERVIEW) {
        viewer->view = TOP_OVERVIEW;
        return;
    }
    switch (key) {
    case 's':
        viewer->sort = TOP_BY_SHARE;
        break;
    case 't':
        viewer->sort = TOP_BY_SECONDS;
        break;
    case 'f':
        viewer->finished = !viewer->finished;
        break;
    case 'h':
    case '?':
        viewer->view = TOP_HELP;
        break;
    case 'i':
    case '\r':
    case '\n':
        viewer->view = TOP_DETAILS;
        break;
    case 'c':
        ask_to_cancel(viewer);
        break;
    case KEY_UP:
    case KEY_DOWN:
        select_next(viewer, key == KEY_DOWN ? 1 : -1);
        break;
    default:
        break;
    }
}

// Draws the page again and again until a key or a signal ends it.
static int watch(struct session *session, struct history *history, size_t count,
                 uint64_t interval_ns, struct err *err)
{
    struct top_page *page = xcalloc(1, sizeof(*page));
    struct viewer viewer = {.session = session, .history = history, .count = count};
    uint64_t due_ns = clock_now_ns(&clock_system) + interval_ns;
    int rc = choose_next(&viewer.shown, history, count, count - 1, err);
    while (rc == 0 && !session_interrupted(session)) {
        struct top_input input = look_of(&viewer);
        uint64_t now_ns = clock_now_ns(&clock_system);
        top_compose(page, &input);
        top_screen_draw(page);
        int key = top_screen_key(now_ns < due_ns ? (int)((due_ns - now_ns) / NS_PER_MS) + 1 : 0);
        uv_run(session_loop(session), UV_RUN_NOWAIT); // notes signals
        bool quits = (key == 'q' || key == 'Q') && !viewer.victim && viewer.view == TOP_OVERVIEW;
        if (quits) {
            break;
        }
        if (key == 'd' && !viewer.victim && viewer.view == TOP_OVERVIEW) {
            rc = choose_next(&viewer.shown, history, count, viewer.shown, err);
        } else if (key > 0) {
            press(&viewer, key);
        }
        if (rc == 0 && clock_now_ns(&clock_system) >= due_ns) {
            look_again(&viewer);
            due_ns = clock_now_ns(&clock_system) + interval_ns;
        }
    }
    free(viewer.victim);
    free(viewer.message);
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
            show_print(json_pack("{s:s, s:o}", "pool", link->url, "error", show_error(&why)));
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
