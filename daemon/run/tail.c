#include "daemon/run/tail.h"

void tail_add(struct tail *tail, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        tail->ring[tail->len++ % TAIL_MAX] = data[i];
    }
}

void tail_last_line(const struct tail *tail, char out[static TAIL_LINE_MAX])
{
    size_t have = tail->len < TAIL_MAX ? tail->len : TAIL_MAX;
    size_t from = tail->len - have;
    size_t len = 0;

    for (size_t i = 0; i < have; i++) {
        char c = tail->ring[(from + i) % TAIL_MAX];

        if (c == '\n') {
            // A line feed starts a new line only if another line follows it.
            if (i + 1 < have && tail->ring[(from + i + 1) % TAIL_MAX] != '\n') {
                len = 0;
            }
        } else if (len < TAIL_LINE_MAX - 1) {
            out[len++] = c >= 0x20 && c < 0x7F ? c : '?';
        }
    }
    out[len] = '\0';
}
