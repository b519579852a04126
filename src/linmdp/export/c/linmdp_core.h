/* linmdp_core.h: what every learner keeps. */
#ifndef LINMDP_CORE_H
#define LINMDP_CORE_H

#include <stdint.h>

#include "linmdp_algebra.h"
#include "linmdp_features.h"
#if LINMDP_AUTO
#include "linmdp_width.h"
#endif

/* One regression: of one step, or of all of them in a stationary task. */
typedef struct {
    linmdp_wide Lambda[LINMDP_PACKED];  /* lam I + sum phi phi' */
    linmdp_wide u[LINMDP_D];            /* sum phi r */
    linmdp_quick factor[LINMDP_PACKED]; /* the Cholesky factor of Lambda, as of the last planning */
} linmdp_group;

typedef struct {
    linmdp_group group[LINMDP_GROUPS];
    linmdp_wide w[LINMDP_LEVELS][LINMDP_D]; /* weights of each step's Q, or of the one Q of discounted rewards */
    linmdp_wide factor[LINMDP_PACKED];      /* while planning: of Lambda of the step ahead */
    linmdp_wide beta;                       /* width of the bonus */
#if LINMDP_AUTO
    linmdp_width width; /* where beta comes from */
#endif
    uint32_t seed, draws, tie_key; /* randomness is a hash of these: see linmdp_draws.h */
    uint16_t next;                 /* the step to be observed next; LINMDP_H between episodes */
    uint8_t open;                  /* an episode has begun, and not ended */
    uint8_t over;                  /* the last step observed was the end for good */
} linmdp_core;

/* The regression of step h. */
#define LINMDP_GROUP(h) (LINMDP_GROUPS == 1 ? 0u : (h))
/* The Q of step h, and the Q that values what follows it. */
#define LINMDP_LEVEL(h) (LINMDP_LEVELS == 1 ? 0u : (h))
#define LINMDP_AFTER(h) (LINMDP_LEVELS == 1 ? 0u : (h) + 1u)

#endif
