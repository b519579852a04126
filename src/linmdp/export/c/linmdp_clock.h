/* linmdp_clock.h: when to plan: the number of episodes has grown by a fraction, LINMDP_REPLAN. */
#ifndef LINMDP_CLOCK_H
#define LINMDP_CLOCK_H

#include <stdint.h>

#include "linmdp_config.h"

#define LINMDP_LATE (UINT32_MAX / 2) /* counters stop here, and what depends on them stays as it is */

typedef struct {
    uint32_t episodes, due; /* episodes begun, and the one to plan in next */
} linmdp_clock;

static inline int linmdp_is_due(const linmdp_clock *clock) { return clock->episodes >= clock->due; }

/* There is a planning in this episode. */
static inline void linmdp_set_clock(linmdp_clock *clock)
{
    const uint32_t wait = (uint32_t)(LINMDP_REPLAN * (linmdp_wide)clock->episodes);
    clock->due = clock->episodes + (wait > 1 ? wait : 1);
}

/* An episode has begun. */
static inline void linmdp_tick(linmdp_clock *clock) { clock->episodes += (uint32_t)(clock->episodes < LINMDP_LATE); }

#endif
