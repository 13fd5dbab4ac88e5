#include "client/program/answer.h"

#include "client/propose/candidate_line.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add(struct propose_reply *reply, struct candidate_line *line)
{
    reply->proposals =
        xrealloc(reply->proposals, reply->proposals_count + 1, sizeof(*reply->proposals));
    struct proposal *proposal = &reply->proposals[reply->proposals_count++];
    *proposal = (struct proposal){
        .source = bytes_copy(line->source, strlen(line->source)),
        .name = line->name,
    };
    line->name = NULL;
    if (!reply->model) {
        reply->model = line->model;
        line->model = NULL;
    }
    reply->input_tokens += line->input_tokens;
    reply->output_tokens += line->output_tokens;
    reply->cost =
        isnan(line->cost) ? reply->cost : (isnan(reply->cost) ? 0 : reply->cost) + line->cost;
}

int program_answer_read(struct propose_reply *ret, const char *text, size_t len, struct err *err)
{
    const char *end = text + len;
    int rc = 0;

    for (size_t number = 1; rc == 0 && text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line_len = (size_t)((newline ? newline : end) - text);

        if (!candidate_line_is_blank(text, line_len)) {
            struct candidate_line line;

            if (ret->proposals_count == ANSWER_CANDIDATES_MAX) {
                return err_set(err, ERR_LIMIT, "line %zu: more than %d candidates", number,
                               ANSWER_CANDIDATES_MAX);
            }
            rc = candidate_line_parse(&line, text, line_len, err);
            if (rc == 0) {
                add(ret, &line);
                candidate_line_release(&line);
            } else {
                rc = err_wrap(err, "line %zu", number);
            }
        }
        text += line_len + 1;
    }
    return rc;
}
