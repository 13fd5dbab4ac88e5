// Design note. curl says which sockets to watch and when to be called again; one uv_poll_t per
// socket and one timer do so. A transfer that has ended is taken from curl's queue, and its
// callback runs when no function of curl is on the stack. curl does not follow redirects here. This
// module does, when they stay at the same origin (worker/endpoint/origin.h).
#include "worker/endpoint/http.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include "worker/endpoint/origin.h"
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1024           // kept open
#define HEADERS_MAX ((size_t)64 << 10) // bytes of all headers of an answer
#define SEND_BYTES 16384L              // of the send buffer, the least that curl allows
#define RECEIVE_BYTES 4096L            // of the receive buffer; answers are short
#define REDIRECTS_MAX 3

struct http {
    uv_loop_t *loop;
    CURLM *multi;
    CURL *nobody;   // a transfer that is never made, see act
    bool connected; // a request got a connection since the last act
    uv_timer_t timer;
    char *user_agent, *ca_file;
    size_t body_max;
    struct http_call *call; // list of the open requests
    size_t count;
    unsigned handles; // libuv handles that are not closed yet
    bool closing;
};

struct http_call {
    struct http *http;
    struct http_call *next, **before;
    CURL *easy;
    struct curl_slist *headers;
    struct strbuf body;
    size_t header_bytes;
    size_t over;   // the limit that the answer exceeded; 0: none
    char *request; // body; NULL: GET
    uint64_t deadline_ns;
    unsigned redirects;
    struct http_reply reply;
    void (*done)(void *owner, const struct http_reply *reply);
    void *owner;
};

// A socket that curl wants watched.
struct watch {
    uv_poll_t poll;
    struct http *http;
    curl_socket_t socket;
};

// ---- freeing ----

static void free_when_closed(struct http *http)
{
    if (http->closing && http->handles == 0) {
        free(http->user_agent);
        free(http->ca_file);
        free(http);
        curl_global_cleanup();
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct http *http = handle->data;

    http->handles--;
    free_when_closed(http);
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    struct http *http = watch->http;

    free(watch);
    http->handles--;
    free_when_closed(http);
}

static void free_call(struct http_call *call)
{
    *call->before = call->next;
    if (call->next) {
        call->next->before = call->before;
    }
    call->http->count--;
    curl_multi_remove_handle(call->http->multi, call->easy);
    curl_easy_cleanup(call->easy);
    for (struct curl_slist *header = call->headers; header; header = header->next) {
        explicit_bzero(header->data, strlen(header->data)); // one of them holds the key
    }
    curl_slist_free_all(call->headers);
    strbuf_release(&call->body);
    free(call->request);
    free(call);
}

// ---- the end of a transfer ----

// Sets the error of a transfer that failed.
static void explain(struct http_call *call, CURLcode code)
{
    static const struct {
        CURLcode code;
        enum err_code err;
        const char *what;
    } row[] = {
        {CURLE_OPERATION_TIMEDOUT, ERR_TIMED_OUT, "did not answer in time"},
        {CURLE_COULDNT_RESOLVE_HOST, ERR_UNREACHABLE, "has no address"},
        {CURLE_COULDNT_RESOLVE_PROXY, ERR_UNREACHABLE, "is behind a proxy that has no address"},
        {CURLE_COULDNT_CONNECT, ERR_UNREACHABLE, "cannot be reached"},
        {CURLE_PEER_FAILED_VERIFICATION, ERR_DENIED, "shows a certificate that cannot be trusted"},
        {CURLE_SSL_CACERT_BADFILE, ERR_DENIED,
         "cannot be checked: the file of certificates is bad"},
        {CURLE_SSL_CONNECT_ERROR, ERR_UNREACHABLE, "does not come to terms over TLS"},
        {CURLE_UNSUPPORTED_PROTOCOL, ERR_INVALID, "does not speak HTTP"},
        {CURLE_WEIRD_SERVER_REPLY, ERR_INVALID, "does not speak HTTP"},
        {CURLE_URL_MALFORMAT, ERR_INVALID, "has a url that is none"},
        {CURLE_BAD_CONTENT_ENCODING, ERR_INVALID, "sends an encoding that cannot be read"},
        {CURLE_PARTIAL_FILE, ERR_INVALID, "sent less than it announced"},
        {CURLE_GOT_NOTHING, ERR_UNREACHABLE, "closed the connection without an answer"},
        {CURLE_RECV_ERROR, ERR_UNREACHABLE, "broke the connection off"},
        {CURLE_SEND_ERROR, ERR_UNREACHABLE, "broke the connection off"},
        {CURLE_HTTP2, ERR_UNREACHABLE, "broke the HTTP/2 connection off"},
        {CURLE_HTTP2_STREAM, ERR_UNREACHABLE, "broke the HTTP/2 stream off"},
    };
    struct err *err = &call->reply.err;

    if (call->over > 0) {
        (void)err_set(err, ERR_LIMIT, "the endpoint sends more than %zu bytes", call->over);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        if (row[i].code == code) {
            (void)err_set(err, row[i].err, "the endpoint %s", row[i].what);
            return;
        }
    }
    (void)err_set(err, ERR_UNREACHABLE, "the endpoint: %s", curl_easy_strerror(code));
}

// Sends the same request to where the answer points, if that has the same origin. Returns whether
// it did. Status 303 is not followed, since it wants a different request.
static bool follow(struct http_call *call)
{
    char *from = NULL, *to = NULL;
    uint64_t now = uv_hrtime();
    long status = call->reply.status;

    if (status != 301 && status != 302 && status != 307 && status != 308) {
        return false;
    }
    (void)curl_easy_getinfo(call->easy, CURLINFO_EFFECTIVE_URL, &from);
    (void)curl_easy_getinfo(call->easy, CURLINFO_REDIRECT_URL, &to);
    if (!from || !to || !origin_is_same(from, to) || call->redirects == REDIRECTS_MAX ||
        call->deadline_ns < now + 1000000) {
        return false;
    }
    call->redirects++;
    call->header_bytes = 0;
    strbuf_reset(&call->body);
    curl_multi_remove_handle(call->http->multi, call->easy);
    to = xstrdup(to); // curl frees its own copy when the URL is set
    curl_easy_setopt(call->easy, CURLOPT_URL, to);
    curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, (long)((call->deadline_ns - now) / 1000000));
    curl_multi_add_handle(call->http->multi, call->easy);
    free(to);
    return true;
}

// Ends a call, unless a redirect is followed.
static void finish(struct http_call *call, CURLcode code)
{
    void (*done)(void *, const struct http_reply *) = call->done;
    void *owner = call->owner;

    (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->reply.status);
    curl_off_t sent = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    double seconds = 0;
    (void)curl_easy_getinfo(call->easy, CURLINFO_TOTAL_TIME, &seconds);
    call->reply.sent |= sent > 0;
    call->reply.seconds += seconds;
    if (code != CURLE_OK) {
        explain(call, code);
    } else if (call->reply.status >= 300 && call->reply.status < 400) {
        if (follow(call)) {
            return;
        }
        (void)err_set(&call->reply.err, ERR_DENIED,
                      "the endpoint redirects elsewhere (status %ld), where the key must not go",
                      call->reply.status);
    }
    struct http_reply reply = call->reply;
    struct strbuf body = call->body;
    call->body = (struct strbuf)STRBUF_INIT;
    reply.body = (struct bytes){.data = (unsigned char *)body.data, .len = body.len};
    free_call(call);
    done(owner, &reply);
    strbuf_release(&body);
}

static void take_finished(struct http *http)
{
    CURLMsg *message;
    int left;

    while (!http->closing && (message = curl_multi_info_read(http->multi, &left))) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        struct http_call *call = NULL;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        finish(call, message->data.result);
    }
}

static int on_connection(void *owner, char *to, char *from, int to_port, int from_port)
{
    (void)to, (void)from, (void)to_port, (void)from_port;
    ((struct http_call *)owner)->http->connected = true;
    return CURL_PREREQFUNC_OK;
}

// ---- sockets and time ----

static void act(struct http *http, curl_socket_t socket, int flags)
{
    int running;

    curl_multi_socket_action(http->multi, socket, flags, &running);
    take_finished(http);
    // curl 8.14 leaves those waiting that cannot share a connection of HTTP/1.1, unless it looks.
    if (http->connected && http->count > 1) {
        curl_multi_add_handle(http->multi, http->nobody);
        curl_multi_remove_handle(http->multi, http->nobody);
    }
    http->connected = false;
}

static void on_timer(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_wanted_time(CURLM *multi, long ms, void *opaque)
{
    struct http *http = opaque;

    (void)multi;
    if (http->closing) {
        return 0;
    }
    if (ms < 0) {
        (void)uv_timer_stop(&http->timer);
    } else {
        (void)uv_timer_start(&http->timer, on_timer, (uint64_t)ms, 0);
    }
    return 0;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;

    flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    act(watch->http, watch->socket, flags);
}

static int on_wanted_socket(CURL *easy, curl_socket_t socket, int what, void *opaque,
                            void *socket_data)
{
    struct http *http = opaque;
    struct watch *watch = socket_data;
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch) {
            curl_multi_assign(http->multi, socket, NULL);
            uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
        }
        return 0;
    }
    if (!watch) {
        watch = xcalloc(1, sizeof(*watch));
        watch->http = http;
        watch->socket = socket;
        if (uv_poll_init(http->loop, &watch->poll, (int)socket) != 0) {
            free(watch);
            return -1;
        }
        watch->poll.data = watch;
        http->handles++;
        curl_multi_assign(http->multi, socket, watch);
    }
    (void)uv_poll_start(&watch->poll, events, on_ready);
    return 0;
}

// ---- receiving ----

static size_t on_body(char *data, size_t size, size_t count, void *opaque)
{
    struct http_call *call = opaque;
    size_t len = size * count;

    if (call->body.len + len > call->http->body_max) {
        call->over = call->http->body_max;
        return 0; // ends the transfer
    }
    strbuf_add(&call->body, data, len);
    return len;
}

// Keeps the headers that say when to ask again and what the body is.
static size_t on_header(char *data, size_t size, size_t count, void *opaque)
{
    static const char *const kept[] = {"retry-after", "x-ratelimit-reset", "x-ratelimit-remaining",
                                       "content-type"};
    struct http_call *call = opaque;
    char *to = call->reply.headers;
    size_t len = size * count, used = strlen(to), line = len;

    call->header_bytes += len;
    if (call->header_bytes > HEADERS_MAX) {
        call->over = HEADERS_MAX;
        return 0; // ends the transfer
    }
    while (line > 0 && (data[line - 1] == '\n' || data[line - 1] == '\r')) {
        line--;
    }
    if (line > 5 && strncmp(data, "HTTP/", 5) == 0) {
        to[0] = '\0'; // drops the headers of a response before this one
        return len;
    }
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        if (line > strlen(kept[i]) && strncasecmp(data, kept[i], strlen(kept[i])) == 0 &&
            used + line + 2 < sizeof(call->reply.headers)) {
            bool name = true;

            for (size_t c = 0; c < line; c++) {
                name &= data[c] != ':';
                to[used++] = name ? (char)tolower((unsigned char)data[c]) : data[c];
            }
            to[used++] = '\n';
            to[used] = '\0';
        }
    }
    return len;
}

// ---- calls ----

static void set_options(struct http_call *call, const struct http_request *request)
{
    const struct http *http = call->http;
    CURL *e = call->easy;

    curl_easy_setopt(e, CURLOPT_URL, request->url);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L); // follow() does
    curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE,
                     RECEIVE_BYTES); // every open request has a buffer of its own
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, SEND_BYTES);
    curl_easy_setopt(e, CURLOPT_USERAGENT, http->user_agent);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, call->headers);
    curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    // Waiting for a connection to share helps over TLS only, whose handshake says whether the
    // server speaks HTTP/2. Without TLS only the first answer would.
    curl_easy_setopt(e, CURLOPT_PIPEWAIT, strncasecmp(request->url, "https:", 6) == 0 ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_connection);
    curl_easy_setopt(e, CURLOPT_PREREQDATA, call);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)request->deadline_ms);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_ms);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(e, CURLOPT_PRIVATE, call);
    if (http->ca_file) {
        curl_easy_setopt(e, CURLOPT_CAINFO, http->ca_file);
    }
    if (call->request) {
        curl_easy_setopt(e, CURLOPT_POST, 1L);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, call->request);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->len);
    }
}

struct http_call *http_start(struct http *http, const struct http_request *request,
                             void (*done)(void *owner, const struct http_reply *reply), void *owner)
{
    struct http_call *call = xcalloc(1, sizeof(*call));

    call->http = http;
    call->done = done;
    call->owner = owner;
    call->reply.err = (struct err)ERR_INIT;
    call->deadline_ns = uv_hrtime() + request->deadline_ms * 1000000;
    strbuf_init(&call->body, http->body_max);
    call->easy = curl_easy_init();
    if (!call->easy) {
        abort(); // out of memory, as in xmalloc
    }
    for (const char *const *header = request->headers; header && *header; header++) {
        call->headers = curl_slist_append(call->headers, *header);
    }
    call->headers = curl_slist_append(call->headers, "Expect:");
    if (request->body) {
        call->request = xmalloc(request->len + 1);
        memcpy(call->request, request->body, request->len);
    }
    set_options(call, request);
    call->next = http->call;
    call->before = &http->call;
    if (call->next) {
        call->next->before = &call->next;
    }
    http->call = call;
    http->count++;
    curl_multi_add_handle(http->multi, call->easy);
    return call;
}

void http_cancel(struct http_call *call)
{
    free_call(call);
}

size_t http_count(const struct http *http)
{
    return http->count;
}

int http_create(struct http **ret, uv_loop_t *loop, const struct http_config *config,
                struct err *err)
{
    if (config->ca_file && access(config->ca_file, R_OK) != 0) {
        return err_set_errno(err, ERR_INVALID, errno, "the file of certificates %s cannot be read",
                             config->ca_file);
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return err_set(err, ERR_SYSTEM, "libcurl cannot be started");
    }
    struct http *http = xcalloc(1, sizeof(*http));
    http->loop = loop;
    http->body_max = config->body_max;
    http->user_agent = xstrdup(config->user_agent);
    http->ca_file = config->ca_file ? xstrdup(config->ca_file) : NULL;
    http->multi = curl_multi_init();
    http->nobody = curl_easy_init();
    if (!http->multi || !http->nobody) {
        abort(); // out of memory, as in xmalloc
    }
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_wanted_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_wanted_time);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
    (void)uv_timer_init(loop, &http->timer);
    http->timer.data = http;
    http->handles = 1;
    *ret = http;
    return 0;
}

void http_close(struct http *http)
{
    if (!http) {
        return;
    }
    http->closing = true;
    while (http->call) {
        free_call(http->call);
    }
    curl_easy_cleanup(http->nobody);
    curl_multi_cleanup(http->multi);
    uv_close((uv_handle_t *)&http->timer, on_timer_closed);
}
