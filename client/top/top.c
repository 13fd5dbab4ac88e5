// Design. A page is composed from the top: title, state of the daemon, devices, searches, keys.
// Devices get the lines that they need, up to half of the page; searches get the rest. Names of
// searches and reasons come from the daemon and its other users, so every character that is not
// printable ASCII becomes '?' before it can reach the terminal.
#include "client/top/top.h"
#include "client/show.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_OF_FRAME 7 // lines that are not devices or searches
#define STAGES_WIDTH 100 // columns from which on it is said where the time of searches went
#define STAGES_LEN 30
#define STAGES_HEADER "  MEAS  WAIT  COMP QUEUE  AWAY"

struct row {
    const struct search_load *load;
    double seconds; // device-seconds, with the jobs that run now
    double lately;  // device-seconds since `before`
};

static void add(struct top_page *page, const struct top_input *input, enum top_style style,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

static void add(struct top_page *page, const struct top_input *input, enum top_style style,
                const char *format, ...)
{
    size_t width = input->width < TOP_WIDTH_MAX ? input->width : TOP_WIDTH_MAX;

    if (page->count >= input->height || page->count >= TOP_LINES_MAX) {
        return;
    }
    struct top_line *line = &page->line[page->count++];
    line->style = style;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line->text, sizeof(line->text), format, args);
    va_end(args);
    line->text[width] = '\0';
    for (char *c = line->text; *c != '\0'; c++) {
        *c = (unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7F ? '?' : *c;
    }
}

// ---- state of the daemon ----

static void add_title(struct top_page *page, const struct top_input *input)
{
    const struct status *now = input->now;
    char up[32];

    show_seconds(now->uptime_seconds, up, sizeof(up));
    add(page, input, TOP_TITLE, "kcast top  %s  up %s", input->url, up);
    if (now->illness) {
        add(page, input, TOP_BAD, "not well: %s", now->illness);
    } else {
        add(page, input, TOP_GOOD, "well");
    }
}

static uint64_t state_count(const struct status *status, enum job_state state)
{
    return state < status->states_count ? status->states[state] : 0;
}

static void add_queue(struct top_page *page, const struct top_input *input)
{
    const struct status *now = input->now;
    size_t busy = 0;

    for (size_t i = 0; i < now->devices_count; i++) {
        busy += now->devices[i].job != 0;
    }
    add(page, input, TOP_PLAIN,
        "%zu of %zu devices busy, %llu of %llu compilers; jobs: %llu queued, %llu compiling, %llu "
        "ready",
        busy, now->devices_count, (unsigned long long)now->compiling,
        (unsigned long long)now->compile_slots, (unsigned long long)state_count(now, JOB_QUEUED),
        (unsigned long long)state_count(now, JOB_COMPILING),
        (unsigned long long)state_count(now, JOB_READY));
}

static uint64_t verdict_count(const struct status *status, size_t verdict)
{
    return status && verdict < status->verdicts_count ? status->verdicts[verdict] : 0;
}

// Results per second since `before`, or counts since the daemon's start.
static void add_verdicts(struct top_page *page, const struct top_input *input)
{
    bool rates = input->before && input->seconds > 0;
    struct strbuf text = STRBUF_INIT;

    for (size_t v = 0; v < input->now->verdicts_count; v++) {
        uint64_t count = verdict_count(input->now, v) - verdict_count(input->before, v);

        if (count > 0 && verdict_known(v)) {
            strbuf_addf(&text, "%s%s ", text.len > 0 ? ", " : "", verdict_name(v));
            if (rates) {
                strbuf_addf(&text, "%.2g/s", (double)count / input->seconds);
            } else {
                strbuf_addf(&text, "%llu", (unsigned long long)count);
            }
        }
    }
    add(page, input, TOP_PLAIN, "results%s: %s", rates ? "" : " since the start",
        text.len > 0 ? strbuf_text(&text) : "none");
    strbuf_release(&text);
}

// ---- devices ----

static enum top_style style_of(const char *state)
{
    static const struct {
        const char *state;
        enum top_style style;
    } row[] = {{"ready", TOP_PLAIN},
               {"busy", TOP_GOOD},
               {"suspect", TOP_WARNING},
               {"probing", TOP_WARNING},
               {"draining", TOP_WARNING}};

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        if (strcmp(row[i].state, state) == 0) {
            return row[i].style;
        }
    }
    return TOP_BAD;
}

// A part of 1 as a percentage; a dash when it is not known.
static void show_part(double part, char *out, size_t size)
{
    if (isnan(part)) {
        (void)snprintf(out, size, "-");
    } else {
        (void)snprintf(out, size, "%.0f%%", 100 * part);
    }
}

static void add_device(struct top_page *page, const struct top_input *input,
                       const struct device_info *device)
{
    char held[32] = "";

    show_seconds(device->held_seconds, held, sizeof(held));
    char busy[32] = "";
    char job[24] = "";
    if (device->job != 0) {
        show_seconds(device->busy_seconds, busy, sizeof(busy));
        (void)snprintf(job, sizeof(job), "%llu", (unsigned long long)device->job);
    }
    char minute[8], start[8];
    show_part(device->utilisation_minute, minute, sizeof(minute));
    show_part(device->utilisation, start, sizeof(start));
    add(page, input, style_of(device->state), "%-8.8s %-11.11s %8s %8s %8s %6s %5s  %s%s%s",
        device->name, device->state, job, busy, held, minute, start,
        device->search ? device->search : "", device->search && device->reason ? "; " : "",
        device->reason ? device->reason : "");
}

static void add_devices(struct top_page *page, const struct top_input *input, size_t most)
{
    const struct status *now = input->now;
    size_t shown = now->devices_count <= most ? now->devices_count : most > 0 ? most - 1 : 0;

    add(page, input, TOP_HEADER, "%-8s %-11s %8s %8s %8s %6s %5s  %s", "DEVICE", "STATE", "JOB",
        "FOR", "HELD", "MINUTE", "ALL", "SEARCH");
    for (size_t i = 0; i < shown; i++) {
        add_device(page, input, &now->devices[i]);
    }
    if (shown < now->devices_count && most > 0) {
        add(page, input, TOP_FAINT, "and %zu devices more", now->devices_count - shown);
    }
}

// ---- searches ----

// Tenants may use the same search names. An older daemon names no tenant, neither
// with a device nor with a search.
static bool is_same(const char *tenant, const char *name, const struct search_load *load)
{
    return strcmp(name, load->name) == 0 &&
           (!tenant || !load->tenant ? tenant == load->tenant : strcmp(tenant, load->tenant) == 0);
}

static double running_seconds(const struct status *status, const struct search_load *load)
{
    double seconds = 0;

    for (size_t i = 0; i < status->devices_count; i++) {
        const struct device_info *device = &status->devices[i];

        if (device->search && is_same(device->tenant, device->search, load) &&
            !isnan(device->busy_seconds)) {
            seconds += device->busy_seconds;
        }
    }
    return seconds;
}

static double seconds_of(const struct status *status, const struct search_load *load)
{
    double seconds = status ? running_seconds(status, load) : 0;

    for (size_t i = 0; status && i < status->searches_count; i++) {
        if (is_same(status->searches[i].tenant, status->searches[i].name, load) &&
            !isnan(status->searches[i].device_seconds)) {
            seconds += status->searches[i].device_seconds;
        }
    }
    return seconds;
}

static int by_lately(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;

    if (x->lately < y->lately || x->lately > y->lately) {
        return x->lately < y->lately ? 1 : -1;
    }
    return strcmp(x->load->name, y->load->name);
}

static int by_seconds(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;

    if (x->seconds < y->seconds || x->seconds > y->seconds) {
        return x->seconds < y->seconds ? 1 : -1;
    }
    return strcmp(x->load->name, y->load->name);
}

// Whether a search has no jobs any more: neither now nor at the look before.
static bool has_ended(const struct top_input *input, const struct search_load *load)
{
    if (load->unfinished > 0) {
        return false;
    }
    for (size_t i = 0; input->before && i < input->before->searches_count; i++) {
        const struct search_load *old = &input->before->searches[i];
        if (is_same(old->tenant, old->name, load)) {
            return old->unfinished == 0;
        }
    }
    return true;
}

// Makes the rows in the order of the page. *ret_lately becomes the sum of `lately` over all
// searches. The caller frees the rows, *ret_count of them.
static struct row *make_rows(const struct top_input *input, double *ret_lately, size_t *ret_count)
{
    const struct status *now = input->now;
    struct row *row = xcalloc(now->searches_count + 1, sizeof(*row));
    size_t count = 0;

    *ret_lately = 0;
    for (size_t i = 0; i < now->searches_count; i++) {
        struct row next = {.load = &now->searches[i]};
        next.seconds = seconds_of(now, next.load);
        next.lately = next.seconds - seconds_of(input->before, next.load);
        next.lately = next.lately > 0 ? next.lately : 0;
        *ret_lately += next.lately;
        if (input->finished || !has_ended(input, next.load)) {
            row[count++] = next;
        }
    }
    qsort(row, count, sizeof(*row), input->sort == TOP_BY_SECONDS ? by_seconds : by_lately);
    *ret_count = count;
    return row;
}

const struct search_load *top_selected(const struct top_input *input, size_t *ret_count)
{
    double lately;
    struct row *row = make_rows(input, &lately, ret_count);
    size_t at = input->selected < *ret_count ? input->selected : *ret_count - 1;
    const struct search_load *load = *ret_count > 0 ? row[at].load : NULL;

    free(row);
    return load;
}

// The tenant is shown unless it is absent or "local", the only tenant of a daemon without tokens.
static bool has_name(const char *tenant)
{
    return tenant && strcmp(tenant, "local") != 0;
}

// Where the search's time went since its first job, in percent: a device measured it, it waited for
// one, it compiled, it waited for that, it had no job at the daemon.
static void show_stages(const struct search_load *load, char *out, size_t size)
{
    const double seconds[] = {load->measuring_seconds, load->waiting_seconds,
                              load->compiling_seconds, load->queued_seconds, load->away_seconds};
    double sum = 0;
    struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
        sum += seconds[i];
    }
    for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
        char part[8];

        show_part(sum > 0 ? seconds[i] / sum : NAN, part, sizeof(part)); // also of an older daemon
        strbuf_addf(&text, " %5s", part);
    }
    (void)snprintf(out, size, "%s", strbuf_text(&text));
    strbuf_release(&text);
}

// Jobs that do not run.
static unsigned long long waiting_jobs(const struct search_load *load)
{
    return load->unfinished > load->running ? load->unfinished - load->running : 0;
}

// What has been measured of what is planned, or the device time of that; a dash for older daemons.
static void show_progress(const struct search_load *load, double seconds, char *out, size_t size)
{
    if (load->planned > 0) {
        (void)snprintf(out, size, "%llu/%llu", (unsigned long long)load->measured,
                       (unsigned long long)load->planned);
    } else if (!isnan(load->planned_seconds) && load->planned_seconds > 0) {
        (void)snprintf(out, size, "%.0f%% time", 100 * seconds / load->planned_seconds);
    } else {
        (void)snprintf(out, size, "%llu", (unsigned long long)load->measured);
    }
}

static void add_search(struct top_page *page, const struct top_input *input, const struct row *row,
                       double lately, bool selected)
{
    const struct search_load *load = row->load;
    char device[32], progress[48], best[32] = "-";

    show_seconds(row->seconds, device, sizeof(device));
    show_progress(load, row->seconds, progress, sizeof(progress));
    if (load->best) {
        (void)snprintf(best, sizeof(best), "%.2fx", exp2(load->best->log2));
    }
    char stages[STAGES_LEN + 1] = "";
    if (input->width >= STAGES_WIDTH) {
        show_stages(load, stages, sizeof(stages));
    }
    add(page, input,
        selected               ? TOP_TITLE
        : load->unfinished > 0 ? TOP_PLAIN
                               : TOP_FAINT,
        "%c%4.0f%% %8s %5llu %4llu %9s %7s %-10.10s%s  %s%s%s", selected ? '>' : ' ',
        lately > 0 ? 100 * row->lately / lately : 0.0, device, (unsigned long long)load->running,
        waiting_jobs(load), progress, best, load->problem ? load->problem : "-", stages,
        has_name(load->tenant) ? load->tenant : "", has_name(load->tenant) ? "/" : "",
        load->name[0] ? load->name : "(earlier ones)");
}

static void add_searches(struct top_page *page, const struct top_input *input, size_t most)
{
    double lately;
    size_t count;
    struct row *row = make_rows(input, &lately, &count);
    size_t hidden = input->now->searches_count - count;
    size_t lines = count + (hidden > 0);
    size_t shown = lines <= most ? count : most > 1 ? most - 2 + (hidden == 0) : 0;
    size_t selected = input->selected < count ? input->selected : count > 0 ? count - 1 : 0;
    // The selected one stays on the page.
    size_t first = selected < shown ? 0 : selected + 1 - shown;

    shown = shown < count ? shown : count;
    add(page, input, TOP_HEADER, "%6s %8s %5s %4s %9s %7s %-10s%s  %s", "SHARE", "DEVICES", "HOLDS",
        "WAIT", "MEASURED", "BEST", "PROBLEM", input->width >= STAGES_WIDTH ? STAGES_HEADER : "",
        "SEARCH");
    for (size_t i = first; i < first + shown && i < count; i++) {
        add_search(page, input, &row[i], lately, input->height != SIZE_MAX && i == selected);
    }
    if (shown < count && most > 0) {
        add(page, input, TOP_FAINT, "and %zu searches more", count - shown);
    }
    if (hidden > 0 && most > 0) {
        add(page, input, TOP_FAINT, "%zu %s ended%s", hidden,
            hidden == 1 ? "search has" : "searches have",
            input->height != SIZE_MAX ? "; f shows them" : "");
    }
    free(row);
}

// ---- the other views ----

static void add_help(struct top_page *page, const struct top_input *input)
{
    static const char *const line[] = {
        "h or ?         this help; any key leaves it",
        "up, down       select a search",
        "enter or i     everything about the selected search; any key leaves it",
        "c              cancel the jobs of the selected search, after a question",
        "f              show searches that have ended, or hide them again",
        "s, t           sort by share of device time since the last look, by all device time",
        "d              the next daemon of --pool",
        "q              quit",
        "",
        "MEASURED is what was measured of what the search means to measure, or the part of the",
        "device time that it means to use; BEST the highest speedup that was measured here.",
    };
    add(page, input, TOP_TITLE, "kcast top: keys");
    for (size_t i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
        add(page, input, TOP_PLAIN, "%s", line[i]);
    }
}

static void add_details(struct top_page *page, const struct top_input *input)
{
    static const char *const stage[] = {"a device measured it", "waited for a device", "compiled",
                                        "waited to be compiled", "had no job here"};
    size_t count;
    const struct search_load *load = top_selected(input, &count);
    char text[64], progress[48];
    if (!load) {
        add(page, input, TOP_PLAIN, "no search is selected");
        return;
    }
    const double seconds[] = {load->measuring_seconds, load->waiting_seconds,
                              load->compiling_seconds, load->queued_seconds, load->away_seconds};
    double held = seconds_of(input->now, load);
    add(page, input, TOP_TITLE, "search %s%s%s", has_name(load->tenant) ? load->tenant : "",
        has_name(load->tenant) ? "/" : "", load->name);
    add(page, input, TOP_PLAIN, "problem    %s", load->problem ? load->problem : "-");
    show_speedup(load->best, text, sizeof(text));
    add(page, input, TOP_PLAIN, "best       %s the baseline, of what was measured here", text);
    show_progress(load, held, progress, sizeof(progress));
    add(page, input, TOP_PLAIN, "measured   %s", progress);
    add(page, input, TOP_PLAIN, "jobs       %llu run, %llu wait", (unsigned long long)load->running,
        waiting_jobs(load));
    show_seconds(held, text, sizeof(text));
    add(page, input, TOP_PLAIN, "devices    %s", text);
    show_seconds(load->compile_seconds, text, sizeof(text));
    add(page, input, TOP_PLAIN, "compilers  %s", text);
    for (size_t i = 0; i < sizeof(stage) / sizeof(stage[0]); i++) {
        show_seconds(seconds[i], text, sizeof(text));
        add(page, input, TOP_PLAIN, "%-10s %s %s", i == 0 ? "time" : "", text, stage[i]);
    }
    for (size_t i = 0; i < input->now->devices_count; i++) {
        const struct device_info *device = &input->now->devices[i];
        if (device->search && is_same(device->tenant, device->search, load)) {
            add(page, input, TOP_GOOD, "holds      %s, job %llu", device->name,
                (unsigned long long)device->job);
        }
    }
}

void top_compose(struct top_page *page, const struct top_input *input)
{
    size_t room = input->height > LINES_OF_FRAME ? input->height - LINES_OF_FRAME : 0;
    size_t devices = input->now->devices_count;

    page->count = 0;
    if (input->view != TOP_OVERVIEW) {
        input->view == TOP_HELP ? add_help(page, input) : add_details(page, input);
        add(page, input, TOP_FAINT, "%s", input->message ? input->message : "any key goes back");
        return;
    }
    if (devices > room / 2 && devices + input->now->searches_count > room) {
        size_t others = input->now->searches_count < room - room / 2 ? input->now->searches_count
                                                                     : room - room / 2;

        devices = room - others;
    }
    add_title(page, input);
    add_queue(page, input);
    add_verdicts(page, input);
    add_devices(page, input, devices);
    add_searches(page, input, room - (devices < room ? devices : room));
    if (input->height != SIZE_MAX) {
        if (input->message) {
            add(page, input, TOP_BAD, "%s", input->message);
            return;
        }
        add(page, input, TOP_FAINT,
            "h help  q quit  i details  c cancel  f ended  s share%s  t time%s%s",
            input->sort == TOP_BY_SHARE ? " *" : "", input->sort == TOP_BY_SECONDS ? " *" : "",
            input->several ? "  d next" : "");
    }
}
