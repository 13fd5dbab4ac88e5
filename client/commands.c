#include "client/commands.h"

#include "common/mem.h"
#include "common/options/nearest.h"
#include "common/strbuf.h"
#include <stdlib.h>
#include <string.h>

static const struct command *const commands[] = {
    &cmd_search,     &cmd_resume,       &cmd_tune,          &cmd_wisdom,      &cmd_measure,
    &cmd_forecast,   &cmd_report,       &cmd_export,        &cmd_import,      &cmd_replay,
    &cmd_eval,       &cmd_problem_list, &cmd_problem_check, &cmd_problem_new, &cmd_status,
    &cmd_jobs,       &cmd_job,          &cmd_cancel,        &cmd_drain,       &cmd_undrain,
    &cmd_quarantine, &cmd_probe,        &cmd_top,           &cmd_token_add,   &cmd_token_revoke,
    &cmd_token_list, &cmd_tls_init,
    &cmd_budget_set, // before the command that is its first word
    &cmd_budget,     &cmd_help,
};

const struct command *commands_at(size_t i)
{
    return i < ARRAY_LEN(commands) ? commands[i] : NULL;
}

bool commands_is_family(const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strncmp(commands[i]->name, word, len) == 0 && commands[i]->name[len] == ' ') {
            return true;
        }
    }
    return false;
}

// A word that only begins commands of two words stands alone, or with a second one that is none.
static int incomplete(const char *word, const char *second, struct err *err)
{
    struct strbuf list = STRBUF_INIT;
    size_t len = strlen(word);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strncmp(commands[i]->name, word, len) == 0 && commands[i]->name[len] == ' ') {
            strbuf_addf(&list, "%s\"%s\"", list.len > 0 ? ", " : "", commands[i]->name + len + 1);
        }
    }
    int rc = err_set(err, ERR_USAGE, "`kcast %s` is followed by one of %s%s%.100s%s", word,
                     strbuf_text(&list), second ? "; \"" : "", second ? second : "",
                     second ? "\" is none" : "");
    strbuf_release(&list);
    return rc;
}

static int unknown(const char *word, const char *second, struct err *err)
{
    char *both = xasprintf("%s %s", word, second ? second : "");
    struct nearest one = {.word = word, .len = strlen(word)};
    struct nearest two = {.word = both, .len = strlen(both)};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        nearest_try(strchr(commands[i]->name, ' ') ? &two : &one, commands[i]->name);
    }
    bool is_two = second && two.best && (!one.best || two.distance < one.distance);
    const char *best = is_two ? two.best : one.best;
    int rc;
    if (commands_is_family(word) && !is_two) {
        rc = incomplete(word, second, err);
    } else if (best) {
        rc = err_set(err, ERR_USAGE, "there is no command \"%.200s\"; did you mean \"%s\"?",
                     is_two ? both : word, best);
    } else {
        rc = err_set(err, ERR_USAGE, "there is no command \"%.100s\"; `kcast help` lists them",
                     word);
    }
    free(both);
    return rc;
}

int commands_find(const struct command **ret, size_t *ret_words, char *const *word, size_t count,
                  struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        const char *name = commands[i]->name;
        const char *blank = strchr(name, ' ');
        size_t len = blank ? (size_t)(blank - name) : strlen(name);
        if (strlen(word[0]) == len && strncmp(word[0], name, len) == 0 &&
            (!blank || (count > 1 && strcmp(word[1], blank + 1) == 0))) {
            *ret = commands[i];
            *ret_words = blank ? 2 : 1;
            return 0;
        }
    }
    return unknown(word[0], count > 1 ? word[1] : NULL, err);
}
