// What `kcast top` shows: a page of lines made from two STATUS replies, and the terminal that shows
// it. top_compose() knows neither the terminal nor the daemon; client/top/top_screen.c alone knows
// the terminal. client/cmd/cmd_top.c calls both.
#ifndef CLIENT_TOP_TOP_H
#define CLIENT_TOP_TOP_H

#include "common/strbuf.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

#define TOP_WIDTH_MAX 250
#define TOP_LINES_MAX 600

enum top_sort {
    TOP_BY_SHARE,   // by the share of device time since `before`
    TOP_BY_SECONDS, // by device-seconds since the daemon's start
};

enum top_view { TOP_OVERVIEW, TOP_DETAILS, TOP_HELP };

enum top_style { TOP_PLAIN, TOP_TITLE, TOP_HEADER, TOP_GOOD, TOP_WARNING, TOP_BAD, TOP_FAINT };

struct top_line {
    char text[TOP_WIDTH_MAX + 1]; // printable ASCII only, at most as long as the page is wide
    enum top_style style;
};

struct top_page {
    struct top_line line[TOP_LINES_MAX];
    size_t count;
};

struct top_input {
    const char *url;
    const struct status *now;
    const struct status *before; // an earlier reply; NULL: rates and shares since the start
    double seconds;              // time between the two replies
    enum top_sort sort;
    bool finished;   // searches that have ended are shown, too
    size_t selected; // which of the searches that are shown details and cancel are for
    enum top_view view;
    const char *message; // a question or what went wrong, instead of the keys; NULL: none
    bool several;        // there are several daemons; the keys include the one for the next
    size_t width;        // columns
    size_t height;       // SIZE_MAX: a page without an end, and without the line of keys
};

// Composes the page: devices, the searches that hold them and how much they are held, the queue,
// results per second, and searches with their device-seconds and shares, progress, best and problem
// and, from 100 columns on, where their time went. Searches without a job at this look and the one
// before have ended. The other views are everything about one search, and what the keys do.
// page->count is at most height; devices and searches that do not fit are counted on a line.
void top_compose(struct top_page *page, const struct top_input *input);

// The search that is selected on a page of this input, or NULL when none is shown. *ret_count is
// how many are shown.
const struct search_load *top_selected(const struct top_input *input, size_t *ret_count);

// The screen of a terminal; only one can be open. ERR_UNSUPPORTED when the terminal cannot show
// pages.
struct top_screen;
MUST_CHECK int top_screen_open(struct top_screen **ret, struct err *err);
// Leaves the terminal as it was before, and frees the screen.
void top_screen_close(struct top_screen *screen);
// These work on the screen that is open.
void top_screen_size(size_t *ret_width, size_t *ret_height);
void top_screen_draw(const struct top_page *page);
// Waits for a key at most this long. Returns the key, 0 when there was none, -1 when the size of
// the terminal has changed.
int top_screen_key(int wait_ms);

#endif
