// Design note. The parser is strict wherever tolerance has made other servers vulnerable: lines end
// with CR LF, field names have no blank before the colon, lines are not continued, there is no body
// and exactly one Host. A connection carries one request, so nothing is parsed after a refusal.
#include "net/http/http_request.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define OK 200u
#define BAD 400u
#define METHOD 405u
#define URI_LONG 414u
#define HEAD_LONG 431u
#define HTTP_VERSION 505u

// A part of the head, borrowed from the caller's bytes.
struct span {
    const char *data;
    size_t len;
};

static bool span_is(struct span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.data, text, span.len) == 0;
}

// Returns whether c may be in a method or a field name (RFC 9110, 5.6.2).
static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

// Returns whether the line has no control characters but tabs.
static bool is_plain(struct span span)
{
    for (size_t i = 0; i < span.len; i++) {
        unsigned char c = (unsigned char)span.data[i];

        if ((c < 0x20 && c != '\t') || c == 0x7F) {
            return false;
        }
    }
    return true;
}

// Cuts *ret off the front of rest, up to the next `stop`, which is skipped. Returns false when
// there is no `stop`.
static bool cut(struct span *rest, char stop, struct span *ret)
{
    const char *end = memchr(rest->data, stop, rest->len);

    if (!end) {
        return false;
    }
    *ret = (struct span){rest->data, (size_t)(end - rest->data)};
    rest->data += ret->len + 1;
    rest->len -= ret->len + 1;
    return true;
}

static void keep(char *to, struct span span)
{
    memcpy(to, span.data, span.len);
    to[span.len] = '\0';
}

static unsigned read_first_line(struct http_request *request, struct span line, bool *ret_old)
{
    struct span method;
    struct span target;

    if (!cut(&line, ' ', &method) || !cut(&line, ' ', &target) || method.len == 0) {
        return BAD;
    }
    for (size_t i = 0; i < method.len; i++) {
        if (!is_token(method.data[i])) {
            return BAD;
        }
    }
    if (!span_is(line, "HTTP/1.1") && !span_is(line, "HTTP/1.0")) {
        return line.len > 5 && memcmp(line.data, "HTTP/", 5) == 0 ? HTTP_VERSION : BAD;
    }
    *ret_old = line.data[7] == '0';
    if (!span_is(method, "GET")) {
        return METHOD;
    }
    const char *query = memchr(target.data, '?', target.len);
    target.len = query ? (size_t)(query - target.data) : target.len;
    if (target.len == 0 || target.data[0] != '/' || memchr(target.data, '\t', target.len)) {
        return BAD;
    }
    if (target.len >= HTTP_PATH_MAX) {
        return URI_LONG;
    }
    keep(request->path, target);
    return OK;
}

static struct span trimmed(struct span span)
{
    while (span.len > 0 && (span.data[0] == ' ' || span.data[0] == '\t')) {
        span.data++;
        span.len--;
    }
    while (span.len > 0 && (span.data[span.len - 1] == ' ' || span.data[span.len - 1] == '\t')) {
        span.len--;
    }
    return span;
}

static bool name_is(struct span name, const char *text)
{
    return name.len == strlen(text) && strncasecmp(name.data, text, name.len) == 0;
}

static unsigned read_field(struct http_request *request, struct span line)
{
    struct span name;

    if (!cut(&line, ':', &name) || name.len == 0) {
        return BAD;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!is_token(name.data[i])) {
            return BAD;
        }
    }
    line = trimmed(line);
    if (name_is(name, "transfer-encoding") ||
        (name_is(name, "content-length") && !span_is(line, "0"))) {
        return BAD;
    }
    if (!name_is(name, "host")) {
        return OK;
    }
    if (request->host[0] || line.len == 0 || line.len >= HTTP_HOST_MAX) {
        return BAD;
    }
    keep(request->host, line);
    return OK;
}

static unsigned read_head(struct http_request *request, struct span head)
{
    struct span line;
    bool first = true;
    bool old = false;
    unsigned status = OK;

    while (status == OK && cut(&head, '\n', &line)) {
        if (line.len == 0 || line.data[line.len - 1] != '\r') {
            return BAD;
        }
        line.len--;
        if (!is_plain(line)) {
            return BAD;
        }
        if (first) {
            status = read_first_line(request, line, &old);
        } else if (line.len > 0) {
            status = read_field(request, line);
        }
        first = false;
    }
    return status == OK && !old && !request->host[0] ? BAD : status;
}

unsigned http_request_read(struct http_request *ret, const char *data, size_t len)
{
    size_t most = len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX;
    const char *end = memmem(data, most, "\r\n\r\n", 4);

    if (!end) {
        return most < HTTP_HEAD_MAX ? 0 : HEAD_LONG;
    }
    struct http_request request = {.path = ""};
    unsigned status = read_head(&request, (struct span){data, (size_t)(end - data) + 4});
    if (status == OK) {
        *ret = request;
    }
    return status;
}

const char *http_status_text(unsigned status)
{
    static const struct {
        unsigned status;
        const char *text;
    } row[] = {
        {OK, "OK"},
        {BAD, "Bad Request"},
        {404, "Not Found"},
        {METHOD, "Method Not Allowed"},
        {URI_LONG, "URI Too Long"},
        {421, "Misdirected Request"},
        {HEAD_LONG, "Request Header Fields Too Large"},
        {503, "Service Unavailable"},
        {HTTP_VERSION, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        if (row[i].status == status) {
            return row[i].text;
        }
    }
    return "Unknown";
}
