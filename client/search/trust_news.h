// What the user of a search is told of trust in its forecasters: when it begins or ends, and when
// another one forecasts. There may be several at a time, whose forecasts take turns; of each only
// what is new is told. Called by search.c. Pure but for what it remembers.
#ifndef CLIENT_SEARCH_TRUST_NEWS_H
#define CLIENT_SEARCH_TRUST_NEWS_H

#include "client/run/run_state.h"

struct trust_news;

// What is in the run state already was told in an earlier session.
struct trust_news *trust_news_create(const struct run_state *run_state);
void trust_news_free(struct trust_news *news); // NULL is fine

// The sentence to tell after the events of the run state, which is the one of trust_news_create;
// NULL when nothing is new. Valid until the run state changes. That the cut has moved is no news.
const char *trust_news_next(struct trust_news *news);

#endif
