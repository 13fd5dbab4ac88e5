#include "client/search/trust_news.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct trust_news {
    const struct run_state *run_state;
    uint64_t events, alarms; // of the run state, that were looked at
    // What the user knows of each forecaster.
    struct told {
        char *forecaster;
        bool trusted;
    } * told;
    size_t count;
};

// What the user knows of this one. Of a new one that is that it is not trusted.
static struct told *told_of(struct trust_news *news, const char *forecaster)
{
    for (size_t i = 0; i < news->count; i++) {
        if (strcmp(news->told[i].forecaster, forecaster) == 0) {
            return &news->told[i];
        }
    }
    news->told = xrealloc(news->told, news->count + 1, sizeof(*news->told));
    news->told[news->count] = (struct told){.forecaster = xstrdup(forecaster)};
    return &news->told[news->count++];
}

struct trust_news *trust_news_create(const struct run_state *run_state)
{
    struct trust_news *news = xcalloc(1, sizeof(*news));
    news->run_state = run_state;
    news->events = run_state->trust_events;
    news->alarms = run_state->trust_alarms;
    for (size_t i = 0; i < run_state->trust_count; i++) {
        const struct run_trusted *trust = &run_state->trust[i];
        told_of(news, trust->forecaster)->trusted = !isnan(trust->cut);
    }
    return news;
}

void trust_news_free(struct trust_news *news)
{
    if (news) {
        for (size_t i = 0; i < news->count; i++) {
            free(news->told[i].forecaster);
        }
        free(news->told);
        free(news);
    }
}

// The first forecaster is no news before it is trusted.
const char *trust_news_next(struct trust_news *news)
{
    const struct run_state *run_state = news->run_state;
    if (run_state->trust_events == news->events) {
        return NULL;
    }
    const struct run_trusted *now = &run_state->trust[run_state->trust_count - 1];
    bool trusted = !isnan(now->cut), alarmed = run_state->trust_alarms != news->alarms;
    size_t known = news->count;
    struct told *told = told_of(news, now->forecaster);
    bool tell = trusted != told->trusted || alarmed || (known > 0 && news->count > known);
    told->trusted = trusted;
    news->events = run_state->trust_events;
    news->alarms = run_state->trust_alarms;
    return tell ? now->text : NULL;
}
