#include "worker/endpoint/origin.h"

#include "common/mem.h"
#include <curl/curl.h>
#include <strings.h>

// One part of a URL; NULL when it has none. Released with curl_free.
static char *part_of(CURLU *url, CURLUPart part)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK ? text : NULL;
}

bool origin_is_same(const char *a, const char *b)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    CURLU *x = curl_url(), *y = curl_url();
    bool same = x && y && curl_url_set(x, CURLUPART_URL, a, 0) == CURLUE_OK &&
                curl_url_set(y, CURLUPART_URL, b, 0) == CURLUE_OK;

    for (size_t i = 0; i < ARRAY_LEN(parts) && same; i++) {
        char *p = part_of(x, parts[i]), *q = part_of(y, parts[i]);

        same = p && q && strcasecmp(p, q) == 0;
        curl_free(p);
        curl_free(q);
    }
    curl_url_cleanup(x);
    curl_url_cleanup(y);
    return same;
}
