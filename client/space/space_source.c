#include "client/space/space_source.h"
#include "common/mem.h"
#include "problem/template.h"
#include <stdlib.h>

int space_sources_init(struct space_sources *ret, const struct space *space, const char *path,
                       struct err *err)
{
    const struct bytes *text = &space->head.template_source;
    struct template *template = NULL;
    int rc = 0;

    if (text->len > 0) {
        char *copy = xstrndup((const char *)text->data, text->len);
        rc = template_parse(&template, copy, path, err);
        free(copy);
    }
    if (rc == 0) {
        *ret = (struct space_sources){.space = space, .template = template};
    }
    return rc;
}

void space_sources_release(struct space_sources *sources)
{
    template_free(sources->template);
    *sources = (struct space_sources){.space = NULL};
}

int space_sources_get(const struct space_sources *sources, size_t i, struct strbuf *out,
                      bool *ret_known, struct err *err)
{
    const struct space_candidate *c = &sources->space->candidate[i];
    struct strbuf text = STRBUF_INIT;

    if (c->source.len > 0) {
        strbuf_add(&text, c->source.data, c->source.len);
    } else if (sources->template && c->point > 0) {
        if (c->point > template_point_count(sources->template)) {
            return err_set(err, ERR_CORRUPT, "candidate \"%.100s\" is no point of the template",
                           c->name);
        }
        template_source(sources->template, (size_t)c->point - 1, &text);
    }
    struct digest digest = digest_of(strbuf_text(&text), text.len);
    int rc = 0;
    if (text.len > 0 && !digest_is_zero(&c->digest) && !digest_equal(&digest, &c->digest)) {
        rc = err_set(err, ERR_CORRUPT, "the source of candidate \"%.100s\" is not the one measured",
                     c->name);
    }
    if (rc == 0) {
        strbuf_add(out, strbuf_text(&text), text.len);
        *ret_known = text.len > 0;
    }
    strbuf_release(&text);
    return rc;
}
