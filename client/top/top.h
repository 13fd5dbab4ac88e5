// What `kcast top` shows: a page of lines made of two STATUS replies. Pure: knows neither the
// terminal nor the daemon.
#ifndef CLIENT_TOP_TOP_H
#define CLIENT_TOP_TOP_H

#include "common/strbuf.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

#define TOP_WIDTH_MAX 250
#define TOP_LINES_MAX 600

enum top_sort {
    TOP_BY_SHARE,   // of the devices' time lately
    TOP_BY_SECONDS, // of devices since the daemon's start
};

enum top_style { TOP_PLAIN, TOP_TITLE, TOP_HEADER, TOP_GOOD, TOP_WARNING, TOP_BAD, TOP_FAINT };

struct top_line {
    char text[TOP_WIDTH_MAX + 1]; // printable ASCII alone, at most the page's width
    enum top_style style;
};

struct top_page {
    struct top_line line[TOP_LINES_MAX];
    size_t count;
};

struct top_input {
    const char *url;
    const struct status *now;
    const struct status *before; // some seconds ago; NULL: rates and shares are since the start
    double seconds;              // between the two
    enum top_sort sort;
    bool several;  // daemons; the keys name the one that shows the next
    size_t width;  // columns
    size_t height; // lines; what does not fit is left out and counted
};

// Devices and who holds them, the queue, results per second, searches with their device-seconds and
// shares. page->count is at most height.
void top_compose(struct top_page *page, const struct top_input *input);

// The screen of a terminal. ERR_UNSUPPORTED when it cannot show pages.
struct top_screen;
MUST_CHECK int top_screen_open(struct top_screen **ret, struct err *err);
// The terminal is as it was before.
void top_screen_close(struct top_screen *screen);
// Of the one that is open:
void top_screen_size(size_t *ret_width, size_t *ret_height);
void top_screen_draw(const struct top_page *page);
// The next key within this time, 0 for none; -1 when the size has changed.
int top_screen_key(int wait_ms);

#endif
